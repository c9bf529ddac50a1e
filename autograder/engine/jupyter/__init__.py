"""Execute notebooks in ordinary Jupyter kernels, and provide warm kernels."""
