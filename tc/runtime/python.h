// What the runtime uses of the interpreter's stable interface, of NumPy's arrays and of DLPack's tensors.
//
// Declared here because a machine that runs kernels has a C compiler, but need not have Python's headers.

#ifndef TC_PYTHON_H
#define TC_PYTHON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct _object PyObject;
typedef struct _ts PyThreadState;
typedef PyObject *PyCFunction(PyObject *self, PyObject *const *arguments, ssize_t count);

typedef struct PyMethodDef {
  const char *name;
  PyCFunction *function;
  int flags;
  const char *documentation;
} PyMethodDef;

enum { METH_FASTCALL = 0x80 };

extern PyObject _Py_NoneStruct, _Py_FalseStruct;
extern PyObject *PyExc_SystemError;
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
int Py_IsInitialized(void);
PyObject *PyBytes_FromStringAndSize(const char *, ssize_t);
char *PyBytes_AsString(PyObject *);
int PyCapsule_IsValid(PyObject *, const char *);
PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
void *PyCapsule_GetPointer(PyObject *, const char *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
void PyErr_Clear(void);
void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
PyObject *PyErr_NoMemory(void);
PyObject *PyErr_Occurred(void);
void PyErr_Restore(PyObject *, PyObject *, PyObject *);
void PyErr_SetString(PyObject *, const char *);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
int PyGILState_Ensure(void);
void PyGILState_Release(int);
PyObject *PyLong_FromLong(long);
long PyLong_AsLong(PyObject *);
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
PyObject *PyObject_CallNoArgs(PyObject *);
PyObject *PyObject_GetAttr(PyObject *, PyObject *);
PyObject *PyObject_Type(PyObject *);
PyObject *PyTuple_GetItem(PyObject *, ssize_t);
PyObject *PyTuple_New(ssize_t);
int PyTuple_SetItem(PyObject *, ssize_t, PyObject *);
ssize_t PyTuple_Size(PyObject *);
PyObject *PyUnicode_InternFromString(const char *);

// PyArrayObject_fields of NumPy 1 and 2, after the header of every object.
typedef struct numpy_fields {
  char *data;
  int dimensions;
  int64_t *shape;
  int64_t *strides;  // in bytes
  PyObject *base;
  PyObject *dtype;
  int flags;
} numpy_fields;

enum { NUMPY_ALIGNED = 0x0100, NUMPY_WRITABLE = 0x0400 };

typedef struct dlpack_tensor {
  char *data;
  int32_t device_type, device;
  int32_t dimensions;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides;  // in elements
  uint64_t byte_offset;
} dlpack_tensor;

enum { DLPACK_CPU = 1, DLPACK_MAJOR = 1 };

// DLPackExchangeAPI of DLPack 1.
typedef struct dlpack_exchange {
  uint32_t major, minor;
  struct dlpack_exchange *older;
  void *allocate, *import, *export;
  int (*describe)(PyObject *object, dlpack_tensor *tensor);  // without owning it; may be absent
  void *stream;
} dlpack_exchange;

#endif
