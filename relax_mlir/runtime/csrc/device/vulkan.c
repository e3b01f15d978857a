/* Vulkan 1.1, by the loader `libvulkan.so.1`, or the file that RELAX_VULKAN_LOADER names.
 *
 * Work is recorded in one command buffer, which is submitted when the host waits for it, or when it
 * is long. Memory has no addresses there: each buffer gets a range of numbers instead. RELAX_VULKAN
 * names the device, by a part of its name; else it is a discrete one before others.
 */
#include "device.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vulkan/api.h"
#include "vulkan/probe.h"

#define FIELD(result, name, types) result(*name) types;
static struct {
  void* (*vkGetInstanceProcAddr)(VkInstance, const char*);
  VULKAN_GLOBAL(FIELD) VULKAN_INSTANCE(FIELD)
} vk;

enum { MOST_SETS = 256, SETS_DESCRIPTORS = 4096, MOST_BUFFERS = 64, STAGE_BYTES = 8 << 20 };

typedef struct {
  uint64_t begin; /* the first of its numbers */
  int64_t bytes;
  VkHandle buffer, memory;
  void* mapped; /* NULL: the host has no access */
} Memory;

typedef struct {
  VkHandle pipeline, layout;
  int32_t num_buffers;
  uint32_t scalar_bytes;
} Kernel;

/* Of each device that is used. */
typedef struct {
  void* loader;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  VkHandle commands, sets, fence;
  VkCommandBuffer recorder;
  int32_t is_recording, num_sets, num_descriptors, is_lost;
  uint32_t is_fused; /* multiply-adds round once */
  uint32_t keeps_special[3];
  uint32_t subgroup; /* threads that subgroups of kernels with matrices must have; 0: theirs */
  VkHandle layouts[MOST_BUFFERS + 1]; /* of sets of that many buffers */
  Kernel* kernels;
  Memory* memories; /* in the order of their numbers */
  int64_t num_memories, room;
  uint64_t next;
  Memory stage;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory_types;
} State;

static State states[RX_MOST_DEVICES], *own; /* that of the device of the call */

static char text[512];

#define SAY(...) (snprintf(text, sizeof text, __VA_ARGS__), (const char*)text)

static const char* failed(const char* what, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) {
    own->is_lost = 1;
    return "the device is lost (VK_ERROR_DEVICE_LOST)";
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY)
    return SAY("out of memory in %s (VkResult %d)", what, result);
  return SAY("%s failed (VkResult %d)", what, result);
}

#define TRY(call, name)                      \
  do {                                       \
    VkResult result_ = call;                 \
    if (result_) return failed(name, result_); \
  } while (0)

static int is_own(const RxKernel* kernel) { return kernel->device == own - states; }

#include "vulkan/cooperative.c"
#include "vulkan/choose.c"

/* ---- Kernels --------------------------------------------------------------------------------- */

static const char* layout_of(int32_t count) {
  if (own->layouts[count]) return NULL;
  VkDescriptorSetLayoutBinding bindings[MOST_BUFFERS];
  for (uint32_t i = 0; i < (uint32_t)count; i++)
    bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                 VK_SHADER_STAGE_COMPUTE, NULL};
  VkDescriptorSetLayoutCreateInfo info = {32, NULL, 0, (uint32_t)count, bindings};
  TRY(vk.vkCreateDescriptorSetLayout(own->device, &info, NULL, &own->layouts[count]),
      "vkCreateDescriptorSetLayout");
  return NULL;
}

/* Where a scalar goes among the push constants: a word, or two, as `spirv/memory.py` has it. */
static uint32_t scalar_size(const char* kind) { return kind[0] == 's' && kind[1] == '8' ? 8 : 4; }

static void measure(Kernel* kernel, const char* kinds) {
  for (const char* kind = kinds; *kind; kind += 2) {
    if (*kind == 'r' || *kind == 'w') {
      kernel->num_buffers++;
      continue;
    }
    uint32_t size = scalar_size(kind);
    kernel->scalar_bytes = (kernel->scalar_bytes + size - 1) / size * size + size;
  }
}

/* Whether an instruction asks for infinities and NaN: by a capability, an extension, or a mode. */
static int is_float_control(const uint32_t* word) {
  uint32_t opcode = *word & 0xFFFF;
  return (opcode == 17 && word[1] == 4466) || (opcode == 16 && word[2] == 4461) ||
         (opcode == 10 && !strcmp((const char*)(word + 1), "SPV_KHR_float_controls"));
}

/* A copy of the code, without what the device does not know; NULL: out of memory. */
static uint32_t* adapted(const RxKernel* from, size_t* bytes) {
  const uint32_t *code = from->code, *end = code + from->code_bytes / 4;
  uint32_t *copy = malloc((size_t)from->code_bytes), *to = copy;
  int is_known = 1;
  if (!copy) return NULL;
  for (const uint32_t* word = code + 5; word < end; word += *word >> 16)
    if ((*word & 0xFFFF) == 16 && word[2] == 4461)
      is_known &= own->keeps_special[word[3] == 16 ? 0 : word[3] == 32 ? 1 : 2] != 0;
  memcpy(to, code, 5 * 4);
  to += 5;
  for (const uint32_t* word = code + 5; word < end; word += *word >> 16) {
    if (!is_known && is_float_control(word)) continue;
    memcpy(to, word, (*word >> 16) * 4);
    to += *word >> 16;
  }
  *bytes = (size_t)(to - copy) * 4;
  return copy;
}

/* Refuses a kernel whose groups the device does not take. */
static const char* check_group(const RxKernel* kernel) {
  const uint32_t* limits = own->properties.limits;
  const char* device = own->properties.deviceName;
  uint32_t threads = 1, bytes = (uint32_t)kernel->workgroup_bytes;
  int is_wide = 0;
  for (int i = 0; i < 3; i++) {
    threads *= (uint32_t)kernel->block[i];
    is_wide |= (uint32_t)kernel->block[i] > limits[59 + i]; /* maxComputeWorkGroupSize */
  }
  if (is_wide || threads > limits[58]) /* maxComputeWorkGroupInvocations */
    return SAY("the groups of the kernel '%.100s' have %u threads, but those of '%.100s' %u at most, "
               "and %u in a row", kernel->name, threads, device, limits[58], limits[59]);
  if (bytes > limits[VK_GROUP_BYTES])
    return SAY("the groups of the kernel '%.100s' have %u bytes of memory, but those of '%.100s' %u",
               kernel->name, bytes, device, limits[VK_GROUP_BYTES]);
  return NULL;
}

static const char* make_kernel(Kernel* kernel, const RxKernel* from) {
  measure(kernel, from->kinds);
  uint32_t most = own->properties.limits[19]; /* maxPerStageDescriptorStorageBuffers */
  if (kernel->num_buffers > MOST_BUFFERS || (uint32_t)kernel->num_buffers > most)
    return SAY("the kernel '%.100s' takes %d buffers, but '%.100s' takes %u", from->name,
               kernel->num_buffers, own->properties.deviceName,
               most < MOST_BUFFERS ? most : MOST_BUFFERS);
  const char* wrong = check_group(from);
  if (!wrong) wrong = layout_of(kernel->num_buffers);
  if (wrong) return wrong;
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE, 0, kernel->scalar_bytes};
  VkPipelineLayoutCreateInfo layout = {
      30, NULL, 0, 1, &own->layouts[kernel->num_buffers], kernel->scalar_bytes > 0, &range};
  TRY(vk.vkCreatePipelineLayout(own->device, &layout, NULL, &kernel->layout),
      "vkCreatePipelineLayout");
  VkShaderModuleCreateInfo code = {16, NULL, 0, 0, NULL};
  uint32_t* words = adapted(from, &code.codeSize);
  if (!words) return "out of memory";
  code.pCode = words;
  VkHandle module;
  VkResult made = vk.vkCreateShaderModule(own->device, &code, NULL, &module);
  free(words);
  if (made) return failed("vkCreateShaderModule", made);
  VkSpecializationMapEntry entry = {0, 0, sizeof own->is_fused};
  VkSpecializationInfo given = {1, &entry, sizeof own->is_fused, &own->is_fused};
  VkComputePipelineCreateInfo pipeline = {
      .sType = 29,
      .stage = {18, NULL, 0, VK_SHADER_STAGE_COMPUTE, module, "main", &given},
      .layout = kernel->layout,
      .basePipelineIndex = -1};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {1000225001, NULL, own->subgroup};
  if (has_capability(from, VK_COOPERATIVE)) {
    pipeline.stage.pNext = own->subgroup ? &size : NULL;
    pipeline.stage.flags = VK_FULL_SUBGROUPS;
  }
  VkResult result =
      vk.vkCreateComputePipelines(own->device, 0, 1, &pipeline, NULL, &kernel->pipeline);
  vk.vkDestroyShaderModule(own->device, module, NULL);
  return result ? failed("vkCreateComputePipelines", result) : NULL;
}

static const char* make_kernels(void) {
  own->kernels = calloc((size_t)rx_num_kernels + 1, sizeof *own->kernels);
  if (!own->kernels) return "out of memory";
  for (int32_t k = 0; k < rx_num_kernels; k++) {
    const char* wrong =
        is_own(&rx_kernels[k]) ? make_kernel(&own->kernels[k], &rx_kernels[k]) : NULL;
    if (wrong) return wrong;
  }
  return NULL;
}

static const char* make_recorder(void) {
  VkCommandPoolCreateInfo commands = {39, NULL, 2, own->family}; /* buffers are reset */
  TRY(vk.vkCreateCommandPool(own->device, &commands, NULL, &own->commands),
      "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffers = {40, NULL, own->commands, 0, 1};
  TRY(vk.vkAllocateCommandBuffers(own->device, &buffers, &own->recorder),
      "vkAllocateCommandBuffers");
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, SETS_DESCRIPTORS};
  VkDescriptorPoolCreateInfo sets = {33, NULL, 0, MOST_SETS, 1, &size};
  TRY(vk.vkCreateDescriptorPool(own->device, &sets, NULL, &own->sets),
      "vkCreateDescriptorPool");
  VkFenceCreateInfo fence = {8, NULL, 0};
  TRY(vk.vkCreateFence(own->device, &fence, NULL, &own->fence), "vkCreateFence");
  return NULL;
}

static int32_t vulkan_type(void) { return 7; /* kDLVulkan */ }

static int64_t vulkan_stream(int32_t device) { return (void)device, 0; }

static const char* probe(int32_t device);
static void vulkan_close(int32_t device);

static const char* vulkan_open(int32_t device) {
  own = &states[device];
  memset(own, 0, sizeof *own);
  own->next = 1 << 20;
  const char* wrong = load();
  if (!wrong) wrong = choose();
  if (!wrong) wrong = create_device();
  if (!wrong) wrong = make_recorder();
  if (!wrong) wrong = probe(device);
  if (!wrong) wrong = make_kernels();
  if (wrong) vulkan_close(device);
  return wrong;
}

static void destroy_memory(const Memory* memory) {
  if (memory->buffer) vk.vkDestroyBuffer(own->device, memory->buffer, NULL);
  if (memory->memory) vk.vkFreeMemory(own->device, memory->memory, NULL);
}

static void destroy_kernel(const Kernel* kernel) {
  if (kernel->pipeline) vk.vkDestroyPipeline(own->device, kernel->pipeline, NULL);
  if (kernel->layout) vk.vkDestroyPipelineLayout(own->device, kernel->layout, NULL);
}

static void destroy_kernels(void) {
  for (int32_t k = 0; own->kernels && k < rx_num_kernels; k++) destroy_kernel(&own->kernels[k]);
  free(own->kernels);
  for (int i = 0; i <= MOST_BUFFERS; i++)
    if (own->layouts[i]) vk.vkDestroyDescriptorSetLayout(own->device, own->layouts[i], NULL);
}

static void vulkan_close(int32_t device) {
  own = &states[device];
  if (own->device) {
    vk.vkDeviceWaitIdle(own->device);
    destroy_kernels();
    destroy_memory(&own->stage);
    if (own->fence) vk.vkDestroyFence(own->device, own->fence, NULL);
    if (own->sets) vk.vkDestroyDescriptorPool(own->device, own->sets, NULL);
    if (own->commands) vk.vkDestroyCommandPool(own->device, own->commands, NULL);
    vk.vkDestroyDevice(own->device, NULL);
  }
  if (own->instance && vk.vkDestroyInstance) vk.vkDestroyInstance(own->instance, NULL);
  free(own->memories);
  /* The loader stays: some drivers do not survive dlclose. */
  memset(own, 0, sizeof *own);
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* Has later work see what was done before. */
static void record_barrier(void) {
  uint32_t stages = VK_STAGE_COMPUTE | VK_STAGE_TRANSFER;
  uint32_t access = VK_ACCESS_SHADER | VK_ACCESS_TRANSFER;
  VkMemoryBarrier barrier = {46, NULL, access, access};
  vk.vkCmdPipelineBarrier(own->recorder, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static const char LOST[] = "the device is lost: modules that use it have to be loaded again";

static const char* record(void) {
  if (own->is_lost) return LOST;
  if (!own->is_recording) {
    VkCommandBufferBeginInfo info = {42, NULL, 1, NULL}; /* submitted once */
    TRY(vk.vkBeginCommandBuffer(own->recorder, &info), "vkBeginCommandBuffer");
    own->is_recording = 1;
  }
  record_barrier();
  return NULL;
}

static const char* submit(void) {
  /* The host reads what was written. */
  VkMemoryBarrier barrier = {46, NULL, VK_ACCESS_SHADER | VK_ACCESS_TRANSFER, 0x2000};
  vk.vkCmdPipelineBarrier(own->recorder, VK_STAGE_COMPUTE | VK_STAGE_TRANSFER, 0x4000, 0, 1,
                          &barrier, 0, NULL, 0, NULL);
  TRY(vk.vkEndCommandBuffer(own->recorder), "vkEndCommandBuffer");
  VkSubmitInfo info = {.sType = 4, .commandBufferCount = 1, .pCommandBuffers = &own->recorder};
  TRY(vk.vkQueueSubmit(own->queue, 1, &info, own->fence), "vkQueueSubmit");
  TRY(vk.vkWaitForFences(own->device, 1, &own->fence, 1, UINT64_MAX), "vkWaitForFences");
  TRY(vk.vkResetFences(own->device, 1, &own->fence), "vkResetFences");
  TRY(vk.vkResetDescriptorPool(own->device, own->sets, 0), "vkResetDescriptorPool");
  return NULL;
}

/* Has the device do what is recorded, and waits for it. If that fails, what others recorded may not
 * have been done: nothing may go on from there. */
static const char* finish(void) {
  if (own->is_lost) return LOST;
  if (!own->is_recording) return NULL;
  own->is_recording = 0;
  own->num_sets = own->num_descriptors = 0;
  const char* wrong = submit();
  own->is_lost |= !!wrong;
  return wrong;
}

#include "vulkan/memory.c"

/* ---- Launches -------------------------------------------------------------------------------- */

static const char* bind_buffers(const Kernel* kernel, const char* kinds, const int64_t* words) {
  VkDescriptorBufferInfo infos[MOST_BUFFERS];
  VkWriteDescriptorSet writes[MOST_BUFFERS];
  VkHandle set;
  VkDescriptorSetAllocateInfo allocate = {34, NULL, own->sets, 1,
                                          &own->layouts[kernel->num_buffers]};
  TRY(vk.vkAllocateDescriptorSets(own->device, &allocate, &set), "vkAllocateDescriptorSets");
  own->num_sets++;
  own->num_descriptors += kernel->num_buffers;
  uint32_t count = 0, most = own->properties.limits[7]; /* maxStorageBufferRange */
  for (const char* kind = kinds; *kind; kind += 2, words++) {
    if (*kind != 'r' && *kind != 'w') continue;
    uint64_t offset;
    int64_t bytes = words[1] > 4 ? (words[1] + 3) / 4 * 4 : 4;
    Memory* memory = find((void*)(uintptr_t)words[0], words[1], &offset);
    if (!memory) return NOT_THERE;
    if (offset % RX_DEVICE_ALIGNMENT)
      return "takes a buffer whose offset is no multiple of 256 bytes";
    if (bytes > (int64_t)most)
      return SAY("takes a buffer of %lld bytes, but '%.100s' has buffers of %u at most",
                 (long long)bytes, own->properties.deviceName, most);
    infos[count] = (VkDescriptorBufferInfo){memory->buffer, offset, (VkDeviceSize)bytes};
    writes[count] = (VkWriteDescriptorSet){
        35, NULL, set, count, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, NULL, &infos[count], NULL};
    count++, words++;
  }
  vk.vkUpdateDescriptorSets(own->device, count, writes, 0, NULL);
  vk.vkCmdBindDescriptorSets(own->recorder, 1, kernel->layout, 0, 1, &set, 0, NULL);
  return NULL;
}

static void push_scalars(const Kernel* kernel, const char* kinds, const int64_t* words) {
  char bytes[128] = {0};
  uint32_t at = 0;
  for (const char* kind = kinds; *kind; kind += 2, words++) {
    if (*kind == 'r' || *kind == 'w') {
      words++;
      continue;
    }
    uint32_t size = scalar_size(kind);
    at = (at + size - 1) / size * size;
    memcpy(bytes + at, words, size); /* the low bytes */
    at += size;
  }
  if (at)
    vk.vkCmdPushConstants(own->recorder, kernel->layout, VK_SHADER_STAGE_COMPUTE, 0, at, bytes);
}

static const char* launch(const Kernel* kernel, const char* kinds, const int32_t grid[3],
                          const int64_t* words) {
  const char* wrong = NULL;
  if (own->num_sets == MOST_SETS ||
      own->num_descriptors + kernel->num_buffers > SETS_DESCRIPTORS)
    wrong = finish();
  if (!wrong) wrong = record();
  if (!wrong) wrong = bind_buffers(kernel, kinds, words);
  if (wrong) return wrong;
  push_scalars(kernel, kinds, words);
  for (int i = 0; i < 3; i++)
    if ((uint32_t)grid[i] > own->properties.limits[55 + i]) /* maxComputeWorkGroupCount */
      return SAY("has %d groups in a row, but '%.100s' takes %u at most", grid[i],
                 own->properties.deviceName, own->properties.limits[55 + i]);
  vk.vkCmdBindPipeline(own->recorder, 1, kernel->pipeline);
  vk.vkCmdDispatch(own->recorder, (uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2]);
  return NULL;
}

static int32_t vulkan_batch(void) { return 1; }

static const char* vulkan_launch(int32_t device, const RxLaunch* one, int32_t count,
                                 int32_t* failed) {
  (void)count, (void)failed;
  own = &states[device];
  const char* kinds = rx_kernels[one->kernel].kinds;
  return launch(&own->kernels[one->kernel], kinds, one->grid, one->words);
}

/* Finds out whether multiply-adds round once: (1 + u)^2 - (1 + 2u) is u^2, or else 0. */
static const char* probe(int32_t device) {
  const RxKernel code = {"probe", "w4", probe_words, sizeof probe_words, {1, 1, 1}, 0, device};
  const int32_t grid[3] = {1, 1, 1};
  float x[3] = {1 + 0x1p-12f, -(1 + 0x1p-11f), 0};
  Kernel kernel = {0};
  void* data = vulkan_alloc(device, RX_DEVICE_ALIGNMENT);
  const int64_t words[2] = {(int64_t)(intptr_t)data, sizeof x};
  const char* wrong = data ? make_kernel(&kernel, &code) : "out of memory";
  if (!wrong) wrong = vulkan_upload(device, data, x, sizeof x);
  if (!wrong) wrong = launch(&kernel, code.kinds, grid, words);
  if (!wrong) wrong = vulkan_download(device, x, data, sizeof x);
  own->is_fused = x[2] != 0;
  if (data) vulkan_free(device, data);
  destroy_kernel(&kernel);
  return wrong;
}

static const char* vulkan_sync(int32_t device) {
  own = &states[device];
  return finish();
}

const RxDriver rx_driver_vulkan = {vulkan_open,   vulkan_close,    vulkan_type, vulkan_stream, vulkan_alloc,  vulkan_free,
                                  vulkan_upload, vulkan_download, vulkan_copy, vulkan_batch,  vulkan_launch, vulkan_sync};
