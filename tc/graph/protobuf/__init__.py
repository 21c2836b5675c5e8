"""Protobuf's binary format."""
