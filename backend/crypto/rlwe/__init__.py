"""The lattice cipher (BGV over SEAL): parameters with their noise bounds, layout of slots, both sides, residues."""
