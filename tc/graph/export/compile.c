// Compiles a kernel anew, for example for another version of CUDA:  compile kernel.cu kernel.cubin [option ...]
//
// NVRTC is a library of CUDA (libnvrtc); it needs no GPU.  `make cubins` calls this for all kernels.

#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what, const char *why) {
  fprintf(stderr, "compile: %s: %s\n", what, why);
  return 1;
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = NULL;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) text = calloc(1, (size_t)size + 1);
  if (text != NULL && fread(text, 1, (size_t)size, file) != (size_t)size) {
    free(text);
    text = NULL;
  }
  fclose(file);
  return text;
}

static int print_log(nvrtcProgram program, const char *source) {
  size_t size = 0;
  nvrtcGetProgramLogSize(program, &size);
  char *log = calloc(1, size + 1);
  if (log != NULL && nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS) return failed(source, log);
  return failed(source, "it does not compile");
}

int main(int count, char **arguments) {
  if (count < 3) return failed("usage", "compile kernel.cu kernel.cubin [option ...]");
  const char *source = arguments[1], *target = arguments[2];
  char *text = read_text(source);
  if (text == NULL) return failed(source, "it cannot be read");
  nvrtcProgram program;
  nvrtcResult result = nvrtcCreateProgram(&program, text, source, 0, NULL, NULL);
  if (result != NVRTC_SUCCESS) return failed(source, nvrtcGetErrorString(result));
  result = nvrtcCompileProgram(program, count - 3, (const char *const *)arguments + 3);
  if (result != NVRTC_SUCCESS) return print_log(program, source);
  size_t size = 0;
  result = nvrtcGetCUBINSize(program, &size);
  char *binary = malloc(size + 1);
  if (binary == NULL) return failed(source, "there is no memory");
  if (result == NVRTC_SUCCESS) result = nvrtcGetCUBIN(program, binary);
  if (result != NVRTC_SUCCESS) return failed(source, nvrtcGetErrorString(result));
  FILE *file = fopen(target, "wb");
  if (file == NULL || fwrite(binary, 1, size, file) != size || fclose(file) != 0)
    return failed(target, "it cannot be written");
  return 0;
}
