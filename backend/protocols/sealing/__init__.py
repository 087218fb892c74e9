"""A trained model is kept sealed at every Host until its scores were measured: nobody is scored with it before."""
