"""Ways of scoring that Fed-EINI is compared with, and the comparison; none of them hides paths as well."""
