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

static const char* webgpu_open(int32_t device) { return (void)device, NULL; }

static void webgpu_close(int32_t device) { (void)device; }

static int32_t webgpu_type(void) { return 15; }

static int64_t webgpu_stream(int32_t device) { return (void)device, 0; }

static void* webgpu_alloc(int32_t device, int64_t bytes) { return (void)device, host_alloc(bytes); }

static int64_t webgpu_free(int32_t device, void* data) { return (void)device, host_free(data); }

static const char* webgpu_upload(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  return told_by_page(host_upload(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

static const char* webgpu_download(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  return told_by_page(host_download(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

static const char* webgpu_copy(int32_t device, void* to, const void* from, int64_t bytes) {
  (void)device;
  return told_by_page(host_copy(to, from, bytes, webgpu_text, sizeof webgpu_text));
}

static int32_t webgpu_batch(void) { return 1; }

static const char* webgpu_launch(int32_t device, const RxLaunch* launch, int32_t count,
                                 int32_t* failed) {
  (void)device, (void)count, (void)failed; /* one */
  return told_by_page(
      host_launch(launch->kernel, launch->grid, launch->words, webgpu_text, sizeof webgpu_text));
}

static const char* webgpu_sync(int32_t device) {
  (void)device;
  return told_by_page(host_submit(webgpu_text, sizeof webgpu_text));
}

const RxDriver rx_driver_webgpu = {webgpu_open,   webgpu_close,    webgpu_type, webgpu_stream, webgpu_alloc,  webgpu_free,
                                  webgpu_upload, webgpu_download, webgpu_copy, webgpu_batch,  webgpu_launch, webgpu_sync};

/* The kernels, for the page to compile. */
RX_API const RxKernel* rx_webgpu_kernels(void) { return rx_kernels; }

RX_API int32_t rx_webgpu_count(void) { return rx_num_kernels; }
