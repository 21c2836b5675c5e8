"""TensorFlow's GraphDef, in text and in binary form, as a source of graphs; TensorFlow is not needed."""
