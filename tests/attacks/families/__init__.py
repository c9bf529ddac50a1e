"""The attacks, a module for each family; each module has them in a tuple named ``ATTACKS``."""
