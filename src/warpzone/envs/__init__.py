"""Gymnasium environments on the native engine."""
