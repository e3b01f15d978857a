/* A loader of Vulkan that passes calls on to the real one, for tests: it counts what is made and not
 * destroyed, has functions fail, and has the device look as others are: twice as many, with memory
 * that the host has no access to, or with less for a group.
 */
#include <dlfcn.h>
#include <string.h>

#include "../../relax_mlir/runtime/csrc/device/vulkan/api.h"

#define API __attribute__((visibility("default")))

static void* (*look_up)(VkInstance, const char*);
static char failing[64];
static int failing_in, failing_result, live, times = 1, is_apart;
static uint32_t most_threads, most_bytes; /* 0: as it is */

/* Has a function fail at its call number `after`, 1 being the next one. */
API void fake_fail(const char* name, int after, int result) {
  strncpy(failing, name, sizeof failing - 1);
  failing_in = after;
  failing_result = result;
}
API int fake_live(void) { return live; }
API void fake_devices(int count, int apart, uint32_t threads, uint32_t bytes) {
  times = count, is_apart = apart, most_threads = threads, most_bytes = bytes;
}

static int fails(const char* name) {
  return failing_in && !strcmp(name, failing) && !--failing_in;
}

#define REAL(name) \
  static typeof(name)* real; \
  if (!real) *(void**)&real = real_##name
#define DECLARE(result, name, types) \
  static void* real_##name;          \
  result name types;
VULKAN_GLOBAL(DECLARE)
VULKAN_INSTANCE(DECLARE)

#define CREATE(name, Info)                                                                  \
  VkResult name(VkDevice device, const Info* info, const void* by, VkHandle* made) {        \
    REAL(name);                                                                             \
    if (fails(#name)) return failing_result;                                                \
    VkResult result = real(device, info, by, made);                                         \
    live += !result;                                                                        \
    return result;                                                                          \
  }
#define DESTROY(name)                                                \
  void name(VkDevice device, VkHandle object, const void* by) {      \
    REAL(name);                                                      \
    real(device, object, by);                                        \
    live--;                                                          \
  }
CREATE(vkCreateBuffer, VkBufferCreateInfo)
DESTROY(vkDestroyBuffer)
DESTROY(vkFreeMemory)
CREATE(vkCreateShaderModule, VkShaderModuleCreateInfo)
DESTROY(vkDestroyShaderModule)
CREATE(vkCreateDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo)
DESTROY(vkDestroyDescriptorSetLayout)
CREATE(vkCreatePipelineLayout, VkPipelineLayoutCreateInfo)
DESTROY(vkDestroyPipelineLayout)
DESTROY(vkDestroyPipeline)
CREATE(vkCreateDescriptorPool, VkDescriptorPoolCreateInfo)
DESTROY(vkDestroyDescriptorPool)
CREATE(vkCreateCommandPool, VkCommandPoolCreateInfo)
DESTROY(vkDestroyCommandPool)
CREATE(vkCreateFence, VkFenceCreateInfo)
DESTROY(vkDestroyFence)

VkResult vkCreateInstance(const VkInstanceCreateInfo* info, const void* by, VkInstance* made) {
  REAL(vkCreateInstance);
  if (fails("vkCreateInstance")) return failing_result;
  VkResult result = real(info, by, made);
  live += !result;
  return result;
}
void vkDestroyInstance(VkInstance instance, const void* by) {
  REAL(vkDestroyInstance);
  real(instance, by);
  live--;
}
VkResult vkCreateDevice(VkPhysicalDevice from, const VkDeviceCreateInfo* info, const void* by,
                        VkDevice* made) {
  REAL(vkCreateDevice);
  if (fails("vkCreateDevice")) return failing_result;
  VkResult result = real(from, info, by, made);
  live += !result;
  return result;
}
void vkDestroyDevice(VkDevice device, const void* by) {
  REAL(vkDestroyDevice);
  real(device, by);
  live--;
}
VkResult vkCreateComputePipelines(VkDevice device, VkHandle cache, uint32_t count,
                                  const VkComputePipelineCreateInfo* info, const void* by,
                                  VkHandle* made) {
  REAL(vkCreateComputePipelines);
  if (fails("vkCreateComputePipelines")) return failing_result;
  VkResult result = real(device, cache, count, info, by, made);
  live += !result;
  return result;
}
VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info, const void* by,
                          VkHandle* made) {
  REAL(vkAllocateMemory);
  if (fails("vkAllocateMemory")) return failing_result;
  VkMemoryAllocateInfo own = *info;
  if (is_apart) own.memoryTypeIndex = 0;
  VkResult result = real(device, &own, by, made);
  live += !result;
  return result;
}
VkResult vkMapMemory(VkDevice device, VkHandle memory, VkDeviceSize from, VkDeviceSize size,
                     uint32_t flags, void** data) {
  REAL(vkMapMemory);
  return fails("vkMapMemory") ? failing_result : real(device, memory, from, size, flags, data);
}
VkResult vkAllocateDescriptorSets(VkDevice device, const VkDescriptorSetAllocateInfo* info,
                                  VkHandle* made) {
  REAL(vkAllocateDescriptorSets);
  return fails("vkAllocateDescriptorSets") ? failing_result : real(device, info, made);
}
VkResult vkEndCommandBuffer(VkCommandBuffer buffer) {
  REAL(vkEndCommandBuffer);
  return fails("vkEndCommandBuffer") ? failing_result : real(buffer);
}
VkResult vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* info, VkHandle fence) {
  REAL(vkQueueSubmit);
  return fails("vkQueueSubmit") ? failing_result : real(queue, count, info, fence);
}
VkResult vkWaitForFences(VkDevice device, uint32_t count, const VkHandle* fences, uint32_t all,
                         uint64_t time) {
  REAL(vkWaitForFences);
  VkResult result = real(device, count, fences, all, time);
  return fails("vkWaitForFences") ? failing_result : result;
}
VkResult vkResetFences(VkDevice device, uint32_t count, const VkHandle* fences) {
  REAL(vkResetFences);
  return fails("vkResetFences") ? failing_result : real(device, count, fences);
}

/* ---- What devices look like */

VkResult vkEnumeratePhysicalDevices(VkInstance instance, uint32_t* count, VkPhysicalDevice* found) {
  REAL(vkEnumeratePhysicalDevices);
  *count = 1;
  VkResult result = real(instance, count, found);
  for (int i = 1; i < times; i++) found[i] = found[0];
  *count *= (uint32_t)times;
  return result < 0 ? result : 0;
}
void vkGetPhysicalDeviceProperties(VkPhysicalDevice device, VkPhysicalDeviceProperties* made) {
  REAL(vkGetPhysicalDeviceProperties);
  real(device, made);
  if (most_bytes) made->limits[54] = most_bytes;
  if (most_threads) made->limits[58] = most_threads;
}
void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                         VkPhysicalDeviceMemoryProperties* made) {
  REAL(vkGetPhysicalDeviceMemoryProperties);
  real(device, made);
  if (!is_apart) return;
  made->memoryTypeCount = 2;
  made->memoryTypes[1].heapIndex = made->memoryTypes[0].heapIndex;
  made->memoryTypes[0].propertyFlags = VK_MEMORY_DEVICE_LOCAL;
  made->memoryTypes[1].propertyFlags = VK_MEMORY_HOST_VISIBLE | VK_MEMORY_HOST_COHERENT;
}
void vkGetBufferMemoryRequirements(VkDevice device, VkHandle buffer, VkMemoryRequirements* made) {
  REAL(vkGetBufferMemoryRequirements);
  real(device, buffer, made);
  if (is_apart) made->memoryTypeBits = 3;
}

#define OWN(X)                                                                                   \
  X(vkCreateBuffer) X(vkDestroyBuffer) X(vkFreeMemory) X(vkCreateShaderModule)                   \
  X(vkDestroyShaderModule) X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout)        \
  X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout) X(vkDestroyPipeline)                      \
  X(vkCreateDescriptorPool) X(vkDestroyDescriptorPool) X(vkCreateCommandPool)                    \
  X(vkDestroyCommandPool) X(vkCreateFence) X(vkDestroyFence) X(vkCreateInstance)                 \
  X(vkDestroyInstance) X(vkCreateDevice) X(vkDestroyDevice) X(vkCreateComputePipelines)          \
  X(vkAllocateMemory) X(vkMapMemory) X(vkAllocateDescriptorSets) X(vkEndCommandBuffer)           \
  X(vkQueueSubmit) X(vkWaitForFences) X(vkResetFences) X(vkEnumeratePhysicalDevices)             \
  X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceMemoryProperties)                        \
  X(vkGetBufferMemoryRequirements)

API void* vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  if (!look_up) {
    void* file = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    *(void**)&look_up = file ? dlsym(file, "vkGetInstanceProcAddr") : NULL;
    if (!look_up) return NULL;
  }
  void* real = look_up(instance, name);
#define WRAP(own)                                           \
  if (!strcmp(name, #own)) {                                \
    real_##own = real;                                      \
    return real ? (void*)(uintptr_t)own : NULL;             \
  }
  OWN(WRAP)
  return real;
}
