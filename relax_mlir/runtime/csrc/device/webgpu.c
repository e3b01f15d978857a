/* The device "webgpu": functions of the page, `web/webgpu.js`, which opens it and compiles kernels
 * before a module is used. Reading from the device takes the page time, so the end of a call does
 * not wait for it: the page does, before it uses results. */

#define DEVICE(name) HOST("device_" name)

/* Nonzero: `text` says what is wrong. */
DEVICE("upload") int32_t host_upload(void* to, const void* from, int64_t bytes, char* text, int32_t room);
DEVICE("download") int32_t host_download(void* to, const void* from, int64_t bytes, char* text, int32_t room);
DEVICE("copy") int32_t host_copy(void* to, const void* from, int64_t bytes, char* text, int32_t room);
DEVICE("launch") int32_t host_launch(int32_t kernel, const int32_t* grid, const int64_t* words, char* text, int32_t room);
DEVICE("submit") int32_t host_submit(char* text, int32_t room);
DEVICE("alloc") void* host_alloc(int64_t bytes);
DEVICE("free") int64_t host_free(void* data);

static char webgpu_text[512];

static const char* told_by_page(int32_t is_wrong) { return is_wrong ? webgpu_text : NULL; }

const char* rx_device_open(void) { return NULL; }

void rx_device_close(void) {}

int32_t rx_device_type(void) { return 15; }

int64_t rx_device_stream(void) { return 0; }

void* rx_device_alloc(int64_t bytes) { return host_alloc(bytes); }

int64_t rx_device_free(void* data) { return host_free(data); }

const char* rx_device_upload(void* to, const void* from, int64_t bytes) {
  return told_by_page(host_upload(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

const char* rx_device_download(void* to, const void* from, int64_t bytes) {
  return told_by_page(host_download(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

const char* rx_device_copy(void* to, const void* from, int64_t bytes) {
  return told_by_page(host_copy(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

int32_t rx_device_batch(void) { return 1; }

const char* rx_device_launch(const RxLaunch* launch, int32_t count, int32_t* failed) {
  (void)count, (void)failed; /* one */
  return told_by_page(
      host_launch(launch->kernel, launch->grid, launch->words, webgpu_text, sizeof webgpu_text));
}

const char* rx_device_sync(void) {
  return told_by_page(host_submit(webgpu_text, sizeof webgpu_text));
}

/* The kernels, for the page to compile. */
RX_API const RxKernel* rx_webgpu_kernels(void) { return rx_kernels; }

RX_API int32_t rx_webgpu_count(void) { return rx_num_kernels; }
