"""How long requests take, and where that time goes."""
