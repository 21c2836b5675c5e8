"""Tests of index-set splitting."""
