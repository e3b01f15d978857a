/* Vulkan 1.1, by the loader `libvulkan.so.1`.
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

#include "vulkan_api.h"

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

static struct {
  void* loader;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  VkHandle commands, sets, fence;
  VkCommandBuffer recorder;
  int32_t is_recording, num_sets, num_descriptors, is_lost;
  VkHandle layouts[MOST_BUFFERS + 1]; /* of sets of that many buffers */
  Kernel* kernels;
  Memory* memories; /* in the order of their numbers */
  int64_t num_memories, room;
  uint64_t next;
  Memory stage;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory_types;
} state;

static char text[512];

#define SAY(...) (snprintf(text, sizeof text, __VA_ARGS__), (const char*)text)

static const char* failed(const char* what, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) {
    state.is_lost = 1;
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

/* ---- The device ------------------------------------------------------------------------------ */

static const char* load(void) {
  state.loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!state.loader) return SAY("there is no Vulkan loader: %s", dlerror());
  *(void**)&vk.vkGetInstanceProcAddr = dlsym(state.loader, "vkGetInstanceProcAddr");
  if (!vk.vkGetInstanceProcAddr) return "libvulkan.so.1 has no vkGetInstanceProcAddr";
#define LOOK(result, name, types)                                      \
  *(void**)&vk.name = vk.vkGetInstanceProcAddr(state.instance, #name); \
  if (!vk.name) return "libvulkan.so.1 has no " #name "; Vulkan 1.1 is needed";
  VULKAN_GLOBAL(LOOK)
  VkApplicationInfo application = {.apiVersion = 1u << 22 | 1u << 12};
  VkInstanceCreateInfo info = {.sType = 1, .pApplicationInfo = &application};
  VkResult result = vk.vkCreateInstance(&info, NULL, &state.instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return "Vulkan finds no driver (VK_ERROR_INCOMPATIBLE_DRIVER): install one for your GPU, or "
           "mesa-vulkan-drivers for one that runs on the CPU";
  if (result) return failed("vkCreateInstance", result);
  VULKAN_INSTANCE(LOOK)
  return NULL;
}

/* The first family of queues that compute; -1: none. */
static int32_t compute_family(VkPhysicalDevice physical) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t i = 0; i < count; i++)
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return (int32_t)i;
  return -1;
}

/* How well a device is liked, by its type; 0: it cannot be used. */
static int32_t rank(VkPhysicalDevice physical, const char* wanted) {
  static const int32_t by_type[] = {1, 4, 5, 3, 2}; /* other, integrated, discrete, virtual, CPU */
  VkPhysicalDeviceProperties properties;
  vk.vkGetPhysicalDeviceProperties(physical, &properties);
  if (properties.apiVersion < (1u << 22 | 1u << 12) || compute_family(physical) < 0) return 0;
  if (wanted && !strstr(properties.deviceName, wanted)) return 0;
  return properties.deviceType < 5 ? by_type[properties.deviceType] : 1;
}

static const char* choose(void) {
  VkPhysicalDevice found[16];
  uint32_t count = 16;
  const char* wanted = getenv("RELAX_VULKAN");
  VkResult result = vk.vkEnumeratePhysicalDevices(state.instance, &count, found);
  if (result < 0) return failed("vkEnumeratePhysicalDevices", result);
  int32_t best = 0;
  for (uint32_t i = 0; i < count; i++) {
    int32_t rank_ = rank(found[i], wanted);
    if (rank_ > best) best = rank_, state.physical = found[i];
  }
  if (!best && wanted)
    return SAY("Vulkan finds no device of 1.1 that computes whose name has '%.100s', as "
               "RELAX_VULKAN says, among %u devices", wanted, count);
  if (!best)
    return SAY("Vulkan finds no device of 1.1 that computes among %u devices", count);
  state.family = (uint32_t)compute_family(state.physical);
  vk.vkGetPhysicalDeviceProperties(state.physical, &state.properties);
  vk.vkGetPhysicalDeviceMemoryProperties(state.physical, &state.memory_types);
  return NULL;
}

/* What a device can do, and whether kernels may be made that need it. */
typedef struct {
  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDevice16BitStorageFeatures bits16;
  VkPhysicalDevice8BitStorageFeatures bits8;
  VkPhysicalDeviceShaderFloat16Int8Features small;
} Features;

static void chain(Features* features) {
  memset(features, 0, sizeof *features);
  features->core = (VkPhysicalDeviceFeatures2){1000059000, &features->bits16, {0}};
  features->bits16 = (VkPhysicalDevice16BitStorageFeatures){1000083000, &features->bits8, 0, {0}};
  features->bits8 = (VkPhysicalDevice8BitStorageFeatures){1000177000, &features->small, 0, {0}};
  features->small = (VkPhysicalDeviceShaderFloat16Int8Features){1000082000, NULL, 0, 0};
}

/* The name of the feature that a capability of SPIR-V needs and the device lacks; else NULL. */
static const char* lacks(const Features* features, uint32_t capability) {
  switch (capability) {
    case 9: return features->small.shaderFloat16 ? NULL : "shaderFloat16";
    case 10: return features->core.features[VK_FLOAT64] ? NULL : "shaderFloat64";
    case 11: return features->core.features[VK_INT64] ? NULL : "shaderInt64";
    case 22: return features->core.features[VK_INT16] ? NULL : "shaderInt16";
    case 39: return features->small.shaderInt8 ? NULL : "shaderInt8";
    case 4433:
      return features->bits16.storageBuffer16BitAccess ? NULL : "storageBuffer16BitAccess";
    case 4448: return features->bits8.storageBuffer8BitAccess ? NULL : "storageBuffer8BitAccess";
    default: return NULL;
  }
}

/* Refuses kernels that the device lacks features for. */
static const char* check(const Features* features) {
  for (int32_t k = 0; k < rx_num_kernels; k++) {
    const uint32_t* word = (const uint32_t*)rx_kernels[k].code + 5;
    for (; (*word & 0xFFFF) == 17; word += 2) {
      const char* missing = lacks(features, word[1]);
      if (missing)
        return SAY("the device '%.100s' has no %s, which the kernel '%.100s' needs",
                   state.properties.deviceName, missing, rx_kernels[k].name);
    }
  }
  return NULL;
}

static const char* create_device(void) {
  static VkExtensionProperties found[512];
  const char* wanted[] = {"VK_KHR_8bit_storage", "VK_KHR_shader_float16_int8"};
  const char* enabled[2];
  uint32_t count = 512, num_enabled = 0;
  vk.vkEnumerateDeviceExtensionProperties(state.physical, NULL, &count, found);
  for (int w = 0; w < 2; w++)
    for (uint32_t i = 0; i < count; i++)
      if (!strcmp(found[i].extensionName, wanted[w])) enabled[num_enabled++] = wanted[w];
  static Features features;
  chain(&features);
  vk.vkGetPhysicalDeviceFeatures2(state.physical, &features.core);
  const char* wrong = check(&features);
  if (wrong) return wrong;
  uint32_t used[] = {VK_ROBUST_BUFFERS, VK_FLOAT64, VK_INT64, VK_INT16};
  static uint32_t all[VK_NUM_FEATURES];
  memcpy(all, features.core.features, sizeof all);
  memset(features.core.features, 0, sizeof all);
  for (int i = 0; i < 4; i++) features.core.features[used[i]] = all[used[i]];
  memset(features.bits16.rest, 0, sizeof features.bits16.rest);
  memset(features.bits8.rest, 0, sizeof features.bits8.rest);
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {2, NULL, 0, state.family, 1, &priority};
  VkDeviceCreateInfo info = {.sType = 3, .pNext = &features, .queueCreateInfoCount = 1,
                             .pQueueCreateInfos = &queue, .enabledExtensionCount = num_enabled,
                             .ppEnabledExtensionNames = enabled};
  TRY(vk.vkCreateDevice(state.physical, &info, NULL, &state.device), "vkCreateDevice");
  vk.vkGetDeviceQueue(state.device, state.family, 0, &state.queue);
  return NULL;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static const char* layout_of(int32_t count) {
  if (state.layouts[count]) return NULL;
  VkDescriptorSetLayoutBinding bindings[MOST_BUFFERS];
  for (uint32_t i = 0; i < (uint32_t)count; i++)
    bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                 VK_SHADER_STAGE_COMPUTE, NULL};
  VkDescriptorSetLayoutCreateInfo info = {32, NULL, 0, (uint32_t)count, bindings};
  TRY(vk.vkCreateDescriptorSetLayout(state.device, &info, NULL, &state.layouts[count]),
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

static const char* make_kernel(Kernel* kernel, const RxKernel* from) {
  measure(kernel, from->kinds);
  uint32_t most = state.properties.limits[19]; /* maxPerStageDescriptorStorageBuffers */
  if (kernel->num_buffers > MOST_BUFFERS || (uint32_t)kernel->num_buffers > most)
    return SAY("the kernel '%.100s' takes %d buffers, but '%.100s' takes %u", from->name,
               kernel->num_buffers, state.properties.deviceName,
               most < MOST_BUFFERS ? most : MOST_BUFFERS);
  const char* wrong = layout_of(kernel->num_buffers);
  if (wrong) return wrong;
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE, 0, kernel->scalar_bytes};
  VkPipelineLayoutCreateInfo layout = {
      30, NULL, 0, 1, &state.layouts[kernel->num_buffers], kernel->scalar_bytes > 0, &range};
  TRY(vk.vkCreatePipelineLayout(state.device, &layout, NULL, &kernel->layout),
      "vkCreatePipelineLayout");
  VkShaderModuleCreateInfo code = {16, NULL, 0, (size_t)from->code_bytes, from->code};
  VkHandle module;
  TRY(vk.vkCreateShaderModule(state.device, &code, NULL, &module), "vkCreateShaderModule");
  VkComputePipelineCreateInfo pipeline = {
      .sType = 29,
      .stage = {18, NULL, 0, VK_SHADER_STAGE_COMPUTE, module, "main", NULL},
      .layout = kernel->layout,
      .basePipelineIndex = -1};
  VkResult result =
      vk.vkCreateComputePipelines(state.device, 0, 1, &pipeline, NULL, &kernel->pipeline);
  vk.vkDestroyShaderModule(state.device, module, NULL);
  return result ? failed("vkCreateComputePipelines", result) : NULL;
}

static const char* make_kernels(void) {
  state.kernels = calloc((size_t)rx_num_kernels + 1, sizeof *state.kernels);
  if (!state.kernels) return "out of memory";
  for (int32_t k = 0; k < rx_num_kernels; k++) {
    const char* wrong = make_kernel(&state.kernels[k], &rx_kernels[k]);
    if (wrong) return wrong;
  }
  return NULL;
}

static const char* make_recorder(void) {
  VkCommandPoolCreateInfo commands = {39, NULL, 2, state.family}; /* buffers are reset */
  TRY(vk.vkCreateCommandPool(state.device, &commands, NULL, &state.commands),
      "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffers = {40, NULL, state.commands, 0, 1};
  TRY(vk.vkAllocateCommandBuffers(state.device, &buffers, &state.recorder),
      "vkAllocateCommandBuffers");
  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, SETS_DESCRIPTORS};
  VkDescriptorPoolCreateInfo sets = {33, NULL, 0, MOST_SETS, 1, &size};
  TRY(vk.vkCreateDescriptorPool(state.device, &sets, NULL, &state.sets),
      "vkCreateDescriptorPool");
  VkFenceCreateInfo fence = {8, NULL, 0};
  TRY(vk.vkCreateFence(state.device, &fence, NULL, &state.fence), "vkCreateFence");
  return NULL;
}

int32_t rx_device_type(void) { return 7; /* kDLVulkan */ }

const char* rx_device_open(void) {
  memset(&state, 0, sizeof state);
  state.next = 1 << 20;
  const char* wrong = load();
  if (!wrong) wrong = choose();
  if (!wrong) wrong = create_device();
  if (!wrong) wrong = make_recorder();
  if (!wrong) wrong = make_kernels();
  if (wrong) rx_device_close();
  return wrong;
}

static void destroy_memory(const Memory* memory) {
  if (memory->buffer) vk.vkDestroyBuffer(state.device, memory->buffer, NULL);
  if (memory->memory) vk.vkFreeMemory(state.device, memory->memory, NULL);
}

static void destroy_kernels(void) {
  for (int32_t k = 0; state.kernels && k < rx_num_kernels; k++) {
    if (state.kernels[k].pipeline)
      vk.vkDestroyPipeline(state.device, state.kernels[k].pipeline, NULL);
    if (state.kernels[k].layout)
      vk.vkDestroyPipelineLayout(state.device, state.kernels[k].layout, NULL);
  }
  free(state.kernels);
  for (int i = 0; i <= MOST_BUFFERS; i++)
    if (state.layouts[i]) vk.vkDestroyDescriptorSetLayout(state.device, state.layouts[i], NULL);
}

void rx_device_close(void) {
  if (state.device) {
    vk.vkDeviceWaitIdle(state.device);
    destroy_kernels();
    destroy_memory(&state.stage);
    if (state.fence) vk.vkDestroyFence(state.device, state.fence, NULL);
    if (state.sets) vk.vkDestroyDescriptorPool(state.device, state.sets, NULL);
    if (state.commands) vk.vkDestroyCommandPool(state.device, state.commands, NULL);
    vk.vkDestroyDevice(state.device, NULL);
  }
  if (state.instance && vk.vkDestroyInstance) vk.vkDestroyInstance(state.instance, NULL);
  free(state.memories);
  /* The loader stays: some drivers do not survive dlclose. */
  memset(&state, 0, sizeof state);
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* Has later work see what was done before. */
static void record_barrier(void) {
  uint32_t stages = VK_STAGE_COMPUTE | VK_STAGE_TRANSFER;
  uint32_t access = VK_ACCESS_SHADER | VK_ACCESS_TRANSFER;
  VkMemoryBarrier barrier = {46, NULL, access, access};
  vk.vkCmdPipelineBarrier(state.recorder, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static const char* record(void) {
  if (state.is_lost) return "the device is lost";
  if (!state.is_recording) {
    VkCommandBufferBeginInfo info = {42, NULL, 1, NULL}; /* submitted once */
    TRY(vk.vkBeginCommandBuffer(state.recorder, &info), "vkBeginCommandBuffer");
    state.is_recording = 1;
  }
  record_barrier();
  return NULL;
}

const char* rx_device_sync(void) {
  if (state.is_lost) return "the device is lost";
  if (!state.is_recording) return NULL;
  state.is_recording = 0;
  state.num_sets = state.num_descriptors = 0;
  /* The host reads what was written. */
  VkMemoryBarrier barrier = {46, NULL, VK_ACCESS_SHADER | VK_ACCESS_TRANSFER, 0x2000};
  vk.vkCmdPipelineBarrier(state.recorder, VK_STAGE_COMPUTE | VK_STAGE_TRANSFER, 0x4000, 0, 1,
                          &barrier, 0, NULL, 0, NULL);
  TRY(vk.vkEndCommandBuffer(state.recorder), "vkEndCommandBuffer");
  VkSubmitInfo submit = {.sType = 4, .commandBufferCount = 1, .pCommandBuffers = &state.recorder};
  TRY(vk.vkQueueSubmit(state.queue, 1, &submit, state.fence), "vkQueueSubmit");
  TRY(vk.vkWaitForFences(state.device, 1, &state.fence, 1, UINT64_MAX), "vkWaitForFences");
  TRY(vk.vkResetFences(state.device, 1, &state.fence), "vkResetFences");
  TRY(vk.vkResetDescriptorPool(state.device, state.sets, 0), "vkResetDescriptorPool");
  return NULL;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* The memory that a number is of, and its offset there; NULL: of none. */
static Memory* find(const void* address, int64_t bytes, uint64_t* offset) {
  uint64_t number = (uint64_t)(uintptr_t)address;
  int64_t low = 0, high = state.num_memories;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (state.memories[middle].begin <= number)
      low = middle + 1;
    else
      high = middle;
  }
  Memory* memory = low ? &state.memories[low - 1] : NULL;
  if (!memory || bytes < 0) return NULL;
  *offset = number - memory->begin;
  return (int64_t)*offset <= memory->bytes - bytes ? memory : NULL;
}

static const char NOT_THERE[] = "accesses memory that the device does not have";

/* The best type of memory among those that may be used; -1: none. */
static int32_t memory_type(uint32_t allowed, uint32_t needed, uint32_t liked) {
  int32_t found = -1;
  for (uint32_t i = 0; i < state.memory_types.memoryTypeCount; i++) {
    uint32_t flags = state.memory_types.memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & needed) != needed) continue;
    if ((flags & liked) == liked) return (int32_t)i;
    if (found < 0) found = (int32_t)i;
  }
  return found;
}

static VkResult make_memory(Memory* memory, int64_t bytes, int is_stage) {
  VkBufferCreateInfo info = {
      .sType = 12, .size = (VkDeviceSize)bytes, .usage = VK_BUFFER_USAGE};
  VkResult result = vk.vkCreateBuffer(state.device, &info, NULL, &memory->buffer);
  if (result) return result;
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(state.device, memory->buffer, &needs);
  uint32_t host = VK_MEMORY_HOST_VISIBLE | VK_MEMORY_HOST_COHERENT;
  int32_t type = memory_type(needs.memoryTypeBits, is_stage ? host : VK_MEMORY_DEVICE_LOCAL,
                             is_stage ? host : host | VK_MEMORY_DEVICE_LOCAL);
  if (type < 0) type = memory_type(needs.memoryTypeBits, 0, VK_MEMORY_DEVICE_LOCAL);
  if (type < 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryAllocateInfo allocate = {5, NULL, needs.size, (uint32_t)type};
  result = vk.vkAllocateMemory(state.device, &allocate, NULL, &memory->memory);
  if (result) return result;
  result = vk.vkBindBufferMemory(state.device, memory->buffer, memory->memory, 0);
  uint32_t flags = state.memory_types.memoryTypes[type].propertyFlags;
  if (!result && (flags & host) == host)
    result = vk.vkMapMemory(state.device, memory->memory, 0, UINT64_MAX, 0, &memory->mapped);
  memory->bytes = bytes;
  return result;
}

void* rx_device_alloc(int64_t bytes) {
  if (state.is_lost) return NULL;
  if (state.num_memories == state.room) {
    int64_t room = state.room ? 2 * state.room : 64;
    Memory* more = realloc(state.memories, (size_t)room * sizeof *more);
    if (!more) return NULL;
    state.memories = more;
    state.room = room;
  }
  Memory memory = {.begin = state.next};
  if (make_memory(&memory, bytes, 0)) {
    destroy_memory(&memory);
    return NULL;
  }
  state.next += ((uint64_t)bytes / RX_DEVICE_ALIGNMENT + 2) * RX_DEVICE_ALIGNMENT;
  state.memories[state.num_memories++] = memory;
  return (void*)(uintptr_t)memory.begin;
}

int64_t rx_device_free(void* data) {
  uint64_t offset;
  Memory* memory = find(data, 0, &offset);
  if (!memory || offset) abort(); /* it is not the device's, or freed */
  rx_device_sync();
  int64_t bytes = memory->bytes, after = state.memories + state.num_memories - (memory + 1);
  destroy_memory(memory);
  memmove(memory, memory + 1, (size_t)after * sizeof *memory);
  state.num_memories--;
  return bytes;
}

static const char* copy_buffer(const Memory* to, uint64_t at, const Memory* from, uint64_t begin,
                               int64_t bytes) {
  const char* wrong = record();
  if (wrong) return wrong;
  VkBufferCopy copy = {begin, at, (VkDeviceSize)bytes};
  vk.vkCmdCopyBuffer(state.recorder, from->buffer, to->buffer, 1, &copy);
  return NULL;
}

const char* rx_device_copy(void* to, const void* from, int64_t bytes) {
  uint64_t at, begin;
  Memory *target = find(to, bytes, &at), *source = find(from, bytes, &begin);
  if (!target || !source) return NOT_THERE;
  return bytes ? copy_buffer(target, at, source, begin, bytes) : NULL;
}

/* Between the host and memory that it has no access to, by memory that it has. */
static const char* transfer(Memory* memory, uint64_t at, char* host, int64_t bytes, int is_up) {
  if (!state.stage.buffer) {
    VkResult result = make_memory(&state.stage, STAGE_BYTES, 1);
    if (result) return failed("an allocation for copies", result);
  }
  for (int64_t done = 0; done < bytes; done += STAGE_BYTES) {
    int64_t part = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
    uint64_t there = at + (uint64_t)done;
    if (is_up) memcpy(state.stage.mapped, host + done, (size_t)part);
    const char* wrong = is_up ? copy_buffer(memory, there, &state.stage, 0, part)
                              : copy_buffer(&state.stage, 0, memory, there, part);
    if (!wrong) wrong = rx_device_sync();
    if (wrong) return wrong;
    if (!is_up) memcpy(host + done, state.stage.mapped, (size_t)part);
  }
  return NULL;
}

const char* rx_device_upload(void* to, const void* from, int64_t bytes) {
  uint64_t at;
  Memory* memory = find(to, bytes, &at);
  if (!memory) return NOT_THERE;
  const char* wrong = rx_device_sync();
  if (wrong) return wrong;
  if (!memory->mapped) return transfer(memory, at, (char*)(uintptr_t)from, bytes, 1);
  memcpy((char*)memory->mapped + at, from, (size_t)bytes);
  return NULL;
}

const char* rx_device_download(void* to, const void* from, int64_t bytes) {
  uint64_t at;
  Memory* memory = find(from, bytes, &at);
  if (!memory) return NOT_THERE;
  const char* wrong = rx_device_sync();
  if (wrong) return wrong;
  if (!memory->mapped) return transfer(memory, at, to, bytes, 0);
  memcpy(to, (char*)memory->mapped + at, (size_t)bytes);
  return NULL;
}

/* ---- Launches -------------------------------------------------------------------------------- */

static const char* bind_buffers(const Kernel* kernel, const char* kinds, const int64_t* words) {
  VkDescriptorBufferInfo infos[MOST_BUFFERS];
  VkWriteDescriptorSet writes[MOST_BUFFERS];
  VkHandle set;
  VkDescriptorSetAllocateInfo allocate = {34, NULL, state.sets, 1,
                                          &state.layouts[kernel->num_buffers]};
  TRY(vk.vkAllocateDescriptorSets(state.device, &allocate, &set), "vkAllocateDescriptorSets");
  state.num_sets++;
  state.num_descriptors += kernel->num_buffers;
  uint32_t count = 0, most = state.properties.limits[7]; /* maxStorageBufferRange */
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
                 (long long)bytes, state.properties.deviceName, most);
    infos[count] = (VkDescriptorBufferInfo){memory->buffer, offset, (VkDeviceSize)bytes};
    writes[count] = (VkWriteDescriptorSet){
        35, NULL, set, count, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, NULL, &infos[count], NULL};
    count++, words++;
  }
  vk.vkUpdateDescriptorSets(state.device, count, writes, 0, NULL);
  vk.vkCmdBindDescriptorSets(state.recorder, 1, kernel->layout, 0, 1, &set, 0, NULL);
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
    vk.vkCmdPushConstants(state.recorder, kernel->layout, VK_SHADER_STAGE_COMPUTE, 0, at, bytes);
}

const char* rx_device_launch(int32_t number, const int32_t grid[3], const int64_t* words) {
  const Kernel* kernel = &state.kernels[number];
  const char *kinds = rx_kernels[number].kinds, *wrong = NULL;
  if (state.num_sets == MOST_SETS ||
      state.num_descriptors + kernel->num_buffers > SETS_DESCRIPTORS)
    wrong = rx_device_sync();
  if (!wrong) wrong = record();
  if (!wrong) wrong = bind_buffers(kernel, kinds, words);
  if (wrong) return wrong;
  push_scalars(kernel, kinds, words);
  vk.vkCmdBindPipeline(state.recorder, 1, kernel->pipeline);
  vk.vkCmdDispatch(state.recorder, (uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2]);
  return NULL;
}
