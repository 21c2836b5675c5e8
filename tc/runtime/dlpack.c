// Memory of ours in the hands of other frameworks (DLPack, version 0 of its structures, which all of them take).
//
// Whoever has taken a tensor over lets go of it on any thread and at any time, also while an exception is on its way,
// which the finalizers that run then must not see.

#include "python.h"

#include <stdlib.h>
#include <string.h>

// DLManagedTensor, and what it keeps alive.
typedef struct managed {
  dlpack_tensor tensor;
  void *context;
  void (*deleter)(struct managed *);
  PyObject *owner;
  int64_t shape[];
} managed;

// The name of an exported object until a consumer takes it over.
static const char name[] = "dltensor";

static void let_go(managed *tensor) {
  if (!Py_IsInitialized()) return;
  int state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DecRef(tensor->owner);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  free(tensor);
}

static void drop(PyObject *exported) {
  if (PyCapsule_IsValid(exported, name)) let_go(PyCapsule_GetPointer(exported, name));
}

// Exports C-contiguous elements on a device of a kind; the owner lives until the consumer releases the tensor.
PyObject *tc_export(void *data, int32_t kind, int32_t device, int32_t dimensions, const int64_t *shape, uint8_t code,
                    uint8_t bits, PyObject *owner) {
  size_t bytes = (size_t)dimensions * sizeof *shape;
  managed *tensor = calloc(1, sizeof *tensor + bytes);
  if (tensor == NULL) return PyErr_NoMemory();
  memcpy(tensor->shape, shape, bytes);
  tensor->tensor = (dlpack_tensor){data, kind, device, dimensions, code, bits, 1, tensor->shape, NULL, 0};
  tensor->deleter = let_go;
  tensor->owner = owner;
  Py_IncRef(owner);
  PyObject *exported = PyCapsule_New(tensor, name, drop);
  if (exported == NULL) let_go(tensor);
  return exported;
}
