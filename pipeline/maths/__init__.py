"""Reads, computes and rounds the mathematics of lessons; nothing that an author writes is ever run as code."""
