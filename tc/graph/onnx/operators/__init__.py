"""The rules of ONNX's operators."""
