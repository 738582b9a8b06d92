"""Interfaces of other libraries: a scikit-learn estimator and a networkx backend."""
