// Warm calls: from the interpreter to a kernel that is already there, and back.
//
// A call is described by a key: for every array what it is, but for its address.  Whoever knows a plan for this key has
// seen that the kernel fits.  Whatever is unusual is left to the thorough way: then a call returns None.

#define _GNU_SOURCE
#include "python.h"
#include "pool.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_SLOTS = 64, MOST_WORDS = 512 };
enum { ABSENT = 0, NUMPY = 1, TORCH = 2, FOLLOWED = 3 };  // the last one: a tensor of PyTorch that autograd follows

// A slot of a call: its arguments come first, then its results.
typedef struct array {
  PyObject *object;  // borrowed; NULL where the caller left a result to us
  char *address;
  int64_t dimensions;
  const int64_t *shape, *strides;
  int64_t unit;  // of the strides, in bytes
  const int64_t *words;
  int64_t length;  // of its words
} array;

typedef struct call {
  int64_t arguments, slots;
  array slot[MOST_SLOTS];
  int64_t length;
  int64_t words[MOST_WORDS];
} call;

// The members of a plan.
enum {
  PLAN_ELEMENTS,  // bytes: the size of an element for every slot
  PLAN_PROGRAM,   // bytes: a `tc_program`, whose memories are the slots, and behind them its arena
  PLAN_ALLOCATE,  // for every result, the function that allocates it
  PLAN_ANNOUNCE,  // for every result, None or a function to be called with the caller's array before it changes
  PLAN_THREADS,   // a function that returns how many threads are allowed
  PLAN_REPORT,    // a function that raises the error for what the program returns, if that is not 0
};

// ---- what the interpreter's side says once

static PyObject *numpy_array, *torch_tensor, *torch_parameter, *is_grad_enabled;
static ptrdiff_t object_header;
static int (*describe_torch)(PyObject *, dlpack_tensor *);
static PyObject *requires_grad, *is_neg;
static int64_t (*run)(const tc_program *, int64_t, uint64_t *);

// ---- describing arrays

static bool add(call *self, const int64_t *words, int64_t count) {
  if (self->length + count > MOST_WORDS) return false;
  if (count) memcpy(self->words + self->length, words, (size_t)count * sizeof *words);
  self->length += count;
  return true;
}

static bool is_empty(const array *self) {
  for (int64_t d = 0; d < self->dimensions; d++)
    if (self->shape[d] == 0) return true;
  return false;
}

// Whether `answer`, a new reference or NULL after an error, is False.
static bool is_false(PyObject *answer) {
  if (answer == NULL) PyErr_Clear();
  else Py_DecRef(answer);
  return answer == &_Py_FalseStruct;
}

static bool describe_array(call *self, array *found, PyObject *object, bool written) {
  int64_t kind, element;
  PyObject *type = PyObject_Type(object);
  Py_DecRef(type);
  if (type == numpy_array) {
    const numpy_fields *fields = (const numpy_fields *)((char *)object + object_header);
    int needed = NUMPY_ALIGNED | (written ? NUMPY_WRITABLE : 0);
    if ((fields->flags & needed) != needed) return false;
    *found = (array){object, fields->data, fields->dimensions, fields->shape, fields->strides, .unit = 1};
    kind = NUMPY;
    element = (int64_t)(intptr_t)fields->dtype;
  } else if (type == torch_tensor || type == torch_parameter) {
    dlpack_tensor tensor;
    // Plans for calls with such tensors are known only where nothing differentiable is made.
    bool followed = !is_false(PyObject_GetAttr(object, requires_grad)) && !is_false(PyObject_CallNoArgs(is_grad_enabled));
    if (followed && written) return false;
    if (!is_false(PyObject_CallMethodObjArgs(object, is_neg, NULL))) return false;
    if (describe_torch(object, &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    if (tensor.device_type != DLPACK_CPU || tensor.lanes != 1 || tensor.bits % 8 != 0) return false;
    char *address = tensor.data + tensor.byte_offset;
    *found = (array){object, address, tensor.dimensions, tensor.shape, tensor.strides, .unit = tensor.bits / 8};
    bool placed = address != NULL && (intptr_t)address % found->unit == 0;
    if (!placed && !is_empty(found)) return false;
    kind = followed ? FOLLOWED : TORCH;
    element = tensor.code << 8 | tensor.bits;
  } else {
    return false;
  }
  found->words = self->words + self->length;
  found->length = 3 + 2 * found->dimensions;
  const int64_t head[] = {kind, element, found->dimensions};
  return add(self, head, 3) && add(self, found->shape, found->dimensions) &&
         add(self, found->strides, found->dimensions);
}

// The first argument that `output` is, counted from 1; 0 if it is none.
static int64_t same_argument(const call *self, const array *output) {
  for (int64_t i = 0; i < self->arguments; i++) {
    const array *other = &self->slot[i];
    if (other->address == output->address && other->length == output->length &&
        memcmp(other->words, output->words, (size_t)output->length * sizeof *output->words) == 0)
      return i + 1;
  }
  return 0;
}

static bool describe_output(call *self, PyObject *object) {
  array *found = &self->slot[self->slots];
  const int64_t absent = ABSENT;
  if (self->slots++ == MOST_SLOTS) return false;
  *found = (array){0};
  if (object == &_Py_NoneStruct) return add(self, &absent, 1);
  if (!describe_array(self, found, object, true)) return false;
  int64_t same = same_argument(self, found);
  return add(self, &same, 1);
}

// `arguments` is a tuple; `out` is None, an array, or a tuple of arrays and None.
static bool describe_call(call *self, PyObject *arguments, PyObject *out) {
  self->length = self->slots = 0;
  self->arguments = PyTuple_Size(arguments);
  if (self->arguments > MOST_SLOTS || !add(self, &self->arguments, 1)) return false;
  for (; self->slots < self->arguments; self->slots++) {
    PyObject *object = PyTuple_GetItem(arguments, self->slots);
    if (!describe_array(self, &self->slot[self->slots], object, false)) return false;
  }
  if (out == &_Py_NoneStruct) return true;
  PyObject *type = PyObject_Type(out), *tuple = PyObject_Type(arguments);
  Py_DecRef(type);
  Py_DecRef(tuple);
  if (type != tuple) return describe_output(self, out);
  ssize_t count = PyTuple_Size(out);
  for (ssize_t i = 0; i < count; i++)
    if (!describe_output(self, PyTuple_GetItem(out, i))) return false;
  return true;
}

// ---- memory that arrays share

typedef struct range {
  intptr_t begin, end;
} range;

static range bytes_of(const array *self, int64_t element) {
  range found = {(intptr_t)self->address, (intptr_t)self->address};
  if (is_empty(self)) return found;
  for (int64_t d = 0; d < self->dimensions; d++) {
    int64_t span = (self->shape[d] - 1) * self->strides[d] * self->unit;
    if (span < 0) found.begin += span;
    else found.end += span;
  }
  found.end += element;
  return found;
}

// Whether a given output has a byte in common with another array, unless it is that argument.
static bool shares_memory(const call *self, const int64_t *elements) {
  for (int64_t i = self->arguments; i < self->slots; i++) {
    const array *output = &self->slot[i];
    if (output->object == NULL) continue;
    range own = bytes_of(output, elements[i]);
    int64_t same = output->words[output->length];
    for (int64_t j = 0; j < i; j++) {
      if (self->slot[j].object == NULL || j + 1 == same) continue;
      range other = bytes_of(&self->slot[j], elements[j]);
      if (own.begin < other.end && other.begin < own.end) return true;
    }
  }
  return false;
}

// ---- calls

static PyObject *none(void) {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

// Allocates the results that the caller did not bring, and announces to their framework that the others will change.
// Puts all of them into the tuple `results`; false with an error set where one of these functions raises it.
static bool prepare_results(call *self, PyObject *plan, PyObject *results) {
  PyObject *allocate = PyTuple_GetItem(plan, PLAN_ALLOCATE), *announce = PyTuple_GetItem(plan, PLAN_ANNOUNCE);
  self->length = 0;  // keys and plans have met, so the words may go
  for (ssize_t i = 0; i < PyTuple_Size(results); i++) {
    array *slot = &self->slot[self->arguments + i];
    if (slot->object != NULL) {
      PyObject *tell = PyTuple_GetItem(announce, i);
      PyObject *told = tell == &_Py_NoneStruct ? none() : PyObject_CallFunctionObjArgs(tell, slot->object, NULL);
      if (told == NULL) return false;
      Py_DecRef(told);
      Py_IncRef(slot->object);
      PyTuple_SetItem(results, i, slot->object);
    } else {
      PyObject *made = PyObject_CallNoArgs(PyTuple_GetItem(allocate, i));
      if (made == NULL) return false;
      PyTuple_SetItem(results, i, made);
      if (!describe_array(self, slot, made, true)) {
        PyErr_SetString(PyExc_SystemError, "a fresh array has no memory that can be written");
        return false;
      }
    }
  }
  return true;
}

// Runs the program on the arrays of the slots and returns what it does.
static int64_t run_program(const call *self, PyObject *plan, int64_t threads) {
  const tc_program *program = (const tc_program *)PyBytes_AsString(PyTuple_GetItem(plan, PLAN_PROGRAM));
  uint64_t memories[MOST_SLOTS + 1];
  for (int64_t i = 0; i < self->slots; i++) memories[i] = (uint64_t)self->slot[i].address;
  PyThreadState *state = PyEval_SaveThread();
  int64_t found = run(program, threads, memories);
  PyEval_RestoreThread(state);
  return found;
}

// The results, a tuple, or NULL with an error set.
static PyObject *carry_out(call *self, PyObject *plan) {
  PyObject *results = PyTuple_New(self->slots - self->arguments);
  if (results == NULL) return NULL;
  bool ready = prepare_results(self, plan, results);
  PyObject *allowed = ready ? PyObject_CallNoArgs(PyTuple_GetItem(plan, PLAN_THREADS)) : NULL;
  if (allowed != NULL) {
    int64_t found = run_program(self, plan, PyLong_AsLong(allowed));
    Py_DecRef(allowed);
    if (found == 0) return results;
    PyObject *number = PyLong_FromLong(found);
    PyObject *reported = PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, PLAN_REPORT), number, NULL);
    Py_DecRef(number);
    if (reported != NULL) return results;
  }
  Py_DecRef(results);
  return NULL;
}

static PyObject *key_of(const call *self) {
  return PyBytes_FromStringAndSize((const char *)self->words, self->length * (int64_t)sizeof *self->words);
}

// call(arguments, out): the result or the tuple of results; None if there is no plan for such a call.
static PyObject *warm_call(PyObject *plans, PyObject *const *given, ssize_t count) {
  call self;
  if (count != 2 || !describe_call(&self, given[0], given[1])) return none();
  PyObject *key = key_of(&self);
  if (key == NULL) return NULL;
  PyObject *found = PyDict_GetItemWithError(plans, key);
  Py_DecRef(key);
  if (found == NULL) return PyErr_Occurred() ? NULL : none();
  const int64_t *elements = (const int64_t *)PyBytes_AsString(PyTuple_GetItem(found, PLAN_ELEMENTS));
  int64_t slots = self.arguments + PyTuple_Size(PyTuple_GetItem(found, PLAN_ALLOCATE));
  if (slots > MOST_SLOTS || shares_memory(&self, elements)) return none();
  // Without out= the results have no slots yet.
  while (self.slots < slots) self.slot[self.slots++] = (array){0};
  Py_IncRef(found);
  PyObject *results = carry_out(&self, found);
  Py_DecRef(found);
  if (results == NULL || PyTuple_Size(results) != 1) return results;
  PyObject *single = PyTuple_GetItem(results, 0);
  Py_IncRef(single);
  Py_DecRef(results);
  return single;
}

// key(arguments, out): what plans for such a call are kept under; None if it must be made the thorough way.
static PyObject *warm_key(PyObject *plans, PyObject *const *given, ssize_t count) {
  (void)plans;
  call self;
  return count == 2 && describe_call(&self, given[0], given[1]) ? key_of(&self) : none();
}

// ---- for the interpreter's side

void tc_know_numpy(PyObject *type, int64_t header, void *tc_run_program_function) {
  numpy_array = type;
  object_header = header;
  run = tc_run_program_function;
}

// The types of tensors, the function that says whether autograd is at work, and the tensors' DLPackExchangeAPI, which
// may be too old to describe them.
void tc_know_torch(PyObject *type, PyObject *parameter, PyObject *enabled, const dlpack_exchange *exchange) {
  while (exchange != NULL && exchange->major != DLPACK_MAJOR) exchange = exchange->older;
  if (type == torch_tensor || exchange == NULL || exchange->describe == NULL) return;
  requires_grad = PyUnicode_InternFromString("requires_grad");
  is_neg = PyUnicode_InternFromString("is_neg");
  describe_torch = exchange->describe;
  torch_parameter = parameter;
  Py_IncRef(is_grad_enabled = enabled);
  torch_tensor = type;
}

static PyMethodDef methods[] = {
  {"call", warm_call, METH_FASTCALL, "call(arguments, out): the results, or None if no plan is known."},
  {"key", warm_key, METH_FASTCALL, "key(arguments, out): the key of such calls, or None."},
};

// `call` (0) and `key` (1) over a dictionary of plans.
PyObject *tc_warm_function(PyObject *plans, int which) { return PyCFunction_NewEx(&methods[which], plans, NULL); }
