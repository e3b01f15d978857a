/* What `vulkan.c` uses of Vulkan 1.1, declared here so that no SDK is needed.
 *
 * Source: Khronos, Vulkan specification 1.1, chapters "Initialization" to "Dispatching Commands".
 */
#ifndef RELAX_VULKAN_API_H
#define RELAX_VULKAN_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
typedef struct VkCommandBuffer_T* VkCommandBuffer;
typedef uint64_t VkHandle; /* of every other object */
typedef uint64_t VkDeviceSize;
typedef int32_t VkResult;

enum {
  VK_SUCCESS = 0,
  VK_ERROR_OUT_OF_HOST_MEMORY = -1,
  VK_ERROR_OUT_OF_DEVICE_MEMORY = -2,
  VK_ERROR_DEVICE_LOST = -4,
  VK_ERROR_INCOMPATIBLE_DRIVER = -9,
};

enum { VK_QUEUE_COMPUTE_BIT = 2 };
enum { VK_BUFFER_USAGE = 1 | 2 | 32 }; /* source and target of copies, storage buffer */
enum { VK_MEMORY_DEVICE_LOCAL = 1, VK_MEMORY_HOST_VISIBLE = 2, VK_MEMORY_HOST_COHERENT = 4 };
enum { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7, VK_SHADER_STAGE_COMPUTE = 32 };
enum { VK_STAGE_COMPUTE = 0x800, VK_STAGE_TRANSFER = 0x1000 };
enum { VK_ACCESS_SHADER = 0x60, VK_ACCESS_TRANSFER = 0x1800 }; /* reads and writes */

typedef struct {
  uint32_t sType;
  const void* pNext;
  const char* pApplicationName;
  uint32_t applicationVersion;
  const char* pEngineName;
  uint32_t engineVersion, apiVersion;
} VkApplicationInfo; /* 0 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
  const VkApplicationInfo* pApplicationInfo;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
} VkInstanceCreateInfo; /* 1 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, queueFamilyIndex, queueCount;
  const float* pQueuePriorities;
} VkDeviceQueueCreateInfo; /* 2 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, queueCreateInfoCount;
  const VkDeviceQueueCreateInfo* pQueueCreateInfos;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
  const void* pEnabledFeatures;
} VkDeviceCreateInfo; /* 3 */

/* VkPhysicalDeviceProperties begins so; its limits have an offset of 296 bytes. */
typedef struct {
  uint32_t apiVersion, driverVersion, vendorID, deviceID, deviceType;
  char deviceName[256];
  uint8_t uuid[20];
  uint32_t limits[512]; /* VkPhysicalDeviceLimits, and what follows */
} VkPhysicalDeviceProperties;

enum { VK_NUM_FEATURES = 55, VK_ROBUST_BUFFERS = 0, VK_FLOAT64 = 39, VK_INT64 = 40, VK_INT16 = 41 };

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t features[VK_NUM_FEATURES]; /* VkPhysicalDeviceFeatures */
} VkPhysicalDeviceFeatures2;          /* 1000059000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t storageBuffer16BitAccess, rest[3];
} VkPhysicalDevice16BitStorageFeatures; /* 1000083000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t storageBuffer8BitAccess, rest[2];
} VkPhysicalDevice8BitStorageFeatures; /* 1000177000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t shaderFloat16, shaderInt8;
} VkPhysicalDeviceShaderFloat16Int8Features; /* 1000082000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  VkPhysicalDeviceProperties properties;
} VkPhysicalDeviceProperties2; /* 1000059001 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t independence[2], keepsSpecial[3], others[12]; /* of floats of 16, 32 and 64 bits */
} VkPhysicalDeviceFloatControlsProperties; /* 1000197000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t vulkanMemoryModel, rest[2];
} VkPhysicalDeviceVulkanMemoryModelFeatures; /* 1000211000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t subgroupSizeControl, computeFullSubgroups;
} VkPhysicalDeviceSubgroupSizeControlFeatures; /* 1000225002 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t cooperativeMatrix, rest[1];
} VkPhysicalDeviceCooperativeMatrixFeatures; /* 1000506000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t rows, columns, depth, A, B, C, result, saturates, scope;
} VkCooperativeMatrixProperties; /* 1000506001 */

enum { VK_GROUP_BYTES = 54 }; /* maxComputeSharedMemorySize, among limits */

enum { VK_FULL_SUBGROUPS = 2 };

enum {
  VK_COMPONENT_F16 = 0,
  VK_COMPONENT_F32 = 1,
  VK_COMPONENT_I8 = 3,
  VK_COMPONENT_I32 = 5,
  VK_SCOPE_SUBGROUP = 3
};

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t size, stages, operations, quads;
} VkPhysicalDeviceSubgroupProperties; /* 1000094000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t least, greatest, most, stages;
} VkPhysicalDeviceSubgroupSizeControlProperties; /* 1000225000 */

typedef struct {
  uint32_t sType;
  void* pNext;
  uint32_t size;
} VkPipelineShaderStageRequiredSubgroupSizeCreateInfo; /* 1000225001 */

typedef struct {
  uint32_t queueFlags, queueCount, rest[4];
} VkQueueFamilyProperties;

typedef struct {
  uint32_t memoryTypeCount;
  struct {
    uint32_t propertyFlags, heapIndex;
  } memoryTypes[32];
  uint32_t memoryHeapCount;
  struct {
    VkDeviceSize size;
    uint32_t flags;
  } memoryHeaps[16];
} VkPhysicalDeviceMemoryProperties;

typedef struct {
  VkDeviceSize size, alignment;
  uint32_t memoryTypeBits;
} VkMemoryRequirements;

typedef struct {
  char extensionName[256];
  uint32_t specVersion;
} VkExtensionProperties;

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
  VkDeviceSize size;
  uint32_t usage, sharingMode, queueFamilyIndexCount;
  const uint32_t* pQueueFamilyIndices;
} VkBufferCreateInfo; /* 12 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  VkDeviceSize allocationSize;
  uint32_t memoryTypeIndex;
} VkMemoryAllocateInfo; /* 5 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
  size_t codeSize;
  const void* pCode;
} VkShaderModuleCreateInfo; /* 16 */

typedef struct {
  uint32_t binding, descriptorType, descriptorCount, stageFlags;
  const void* pImmutableSamplers;
} VkDescriptorSetLayoutBinding;

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, bindingCount;
  const VkDescriptorSetLayoutBinding* pBindings;
} VkDescriptorSetLayoutCreateInfo; /* 32 */

typedef struct {
  uint32_t stageFlags, offset, size;
} VkPushConstantRange;

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, setLayoutCount;
  const VkHandle* pSetLayouts;
  uint32_t pushConstantRangeCount;
  const VkPushConstantRange* pPushConstantRanges;
} VkPipelineLayoutCreateInfo; /* 30 */

typedef struct {
  uint32_t constantID, offset;
  size_t size;
} VkSpecializationMapEntry;

typedef struct {
  uint32_t mapEntryCount;
  const VkSpecializationMapEntry* pMapEntries;
  size_t dataSize;
  const void* pData;
} VkSpecializationInfo;

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, stage;
  VkHandle module;
  const char* pName;
  const VkSpecializationInfo* pSpecializationInfo;
} VkPipelineShaderStageCreateInfo; /* 18 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
  VkPipelineShaderStageCreateInfo stage;
  VkHandle layout, basePipelineHandle;
  int32_t basePipelineIndex;
} VkComputePipelineCreateInfo; /* 29 */

typedef struct {
  uint32_t type, descriptorCount;
} VkDescriptorPoolSize;

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, maxSets, poolSizeCount;
  const VkDescriptorPoolSize* pPoolSizes;
} VkDescriptorPoolCreateInfo; /* 33 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  VkHandle descriptorPool;
  uint32_t descriptorSetCount;
  const VkHandle* pSetLayouts;
} VkDescriptorSetAllocateInfo; /* 34 */

typedef struct {
  VkHandle buffer;
  VkDeviceSize offset, range;
} VkDescriptorBufferInfo;

typedef struct {
  uint32_t sType;
  const void* pNext;
  VkHandle dstSet;
  uint32_t dstBinding, dstArrayElement, descriptorCount, descriptorType;
  const void* pImageInfo;
  const VkDescriptorBufferInfo* pBufferInfo;
  const void* pTexelBufferView;
} VkWriteDescriptorSet; /* 35 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags, queueFamilyIndex;
} VkCommandPoolCreateInfo; /* 39 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  VkHandle commandPool;
  uint32_t level, commandBufferCount;
} VkCommandBufferAllocateInfo; /* 40 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
  const void* pInheritanceInfo;
} VkCommandBufferBeginInfo; /* 42 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t srcAccessMask, dstAccessMask;
} VkMemoryBarrier; /* 46 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t waitSemaphoreCount;
  const void *pWaitSemaphores, *pWaitDstStageMask;
  uint32_t commandBufferCount;
  const VkCommandBuffer* pCommandBuffers;
  uint32_t signalSemaphoreCount;
  const void* pSignalSemaphores;
} VkSubmitInfo; /* 4 */

typedef struct {
  uint32_t sType;
  const void* pNext;
  uint32_t flags;
} VkFenceCreateInfo; /* 8 */

typedef struct {
  VkDeviceSize srcOffset, dstOffset, size;
} VkBufferCopy;

#define VULKAN_GLOBAL(X)                                                          \
  X(VkResult, vkCreateInstance, (const VkInstanceCreateInfo*, const void*, VkInstance*)) \
  X(VkResult, vkEnumerateInstanceVersion, (uint32_t*))

#define VULKAN_INSTANCE(X)                                                                      \
  X(void, vkDestroyInstance, (VkInstance, const void*))                                         \
  X(VkResult, vkEnumeratePhysicalDevices, (VkInstance, uint32_t*, VkPhysicalDevice*))           \
  X(void, vkGetPhysicalDeviceProperties, (VkPhysicalDevice, VkPhysicalDeviceProperties*))       \
  X(void, vkGetPhysicalDeviceProperties2, (VkPhysicalDevice, VkPhysicalDeviceProperties2*))     \
  X(void, vkGetPhysicalDeviceFeatures2, (VkPhysicalDevice, VkPhysicalDeviceFeatures2*))         \
  X(void, vkGetPhysicalDeviceQueueFamilyProperties,                                             \
    (VkPhysicalDevice, uint32_t*, VkQueueFamilyProperties*))                                    \
  X(void, vkGetPhysicalDeviceMemoryProperties,                                                  \
    (VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*))                                      \
  X(VkResult, vkEnumerateDeviceExtensionProperties,                                             \
    (VkPhysicalDevice, const char*, uint32_t*, VkExtensionProperties*))                         \
  X(VkResult, vkCreateDevice, (VkPhysicalDevice, const VkDeviceCreateInfo*, const void*, VkDevice*)) \
  X(void, vkDestroyDevice, (VkDevice, const void*))                                             \
  X(void, vkGetDeviceQueue, (VkDevice, uint32_t, uint32_t, VkQueue*))                           \
  X(VkResult, vkDeviceWaitIdle, (VkDevice))                                                     \
  X(VkResult, vkCreateBuffer, (VkDevice, const VkBufferCreateInfo*, const void*, VkHandle*))    \
  X(void, vkDestroyBuffer, (VkDevice, VkHandle, const void*))                                   \
  X(void, vkGetBufferMemoryRequirements, (VkDevice, VkHandle, VkMemoryRequirements*))           \
  X(VkResult, vkAllocateMemory, (VkDevice, const VkMemoryAllocateInfo*, const void*, VkHandle*)) \
  X(void, vkFreeMemory, (VkDevice, VkHandle, const void*))                                      \
  X(VkResult, vkBindBufferMemory, (VkDevice, VkHandle, VkHandle, VkDeviceSize))                 \
  X(VkResult, vkMapMemory, (VkDevice, VkHandle, VkDeviceSize, VkDeviceSize, uint32_t, void**))  \
  X(VkResult, vkCreateShaderModule,                                                             \
    (VkDevice, const VkShaderModuleCreateInfo*, const void*, VkHandle*))                        \
  X(void, vkDestroyShaderModule, (VkDevice, VkHandle, const void*))                             \
  X(VkResult, vkCreateDescriptorSetLayout,                                                      \
    (VkDevice, const VkDescriptorSetLayoutCreateInfo*, const void*, VkHandle*))                 \
  X(void, vkDestroyDescriptorSetLayout, (VkDevice, VkHandle, const void*))                      \
  X(VkResult, vkCreatePipelineLayout,                                                           \
    (VkDevice, const VkPipelineLayoutCreateInfo*, const void*, VkHandle*))                      \
  X(void, vkDestroyPipelineLayout, (VkDevice, VkHandle, const void*))                           \
  X(VkResult, vkCreateComputePipelines,                                                         \
    (VkDevice, VkHandle, uint32_t, const VkComputePipelineCreateInfo*, const void*, VkHandle*)) \
  X(void, vkDestroyPipeline, (VkDevice, VkHandle, const void*))                                 \
  X(VkResult, vkCreateDescriptorPool,                                                           \
    (VkDevice, const VkDescriptorPoolCreateInfo*, const void*, VkHandle*))                      \
  X(void, vkDestroyDescriptorPool, (VkDevice, VkHandle, const void*))                           \
  X(VkResult, vkResetDescriptorPool, (VkDevice, VkHandle, uint32_t))                            \
  X(VkResult, vkAllocateDescriptorSets, (VkDevice, const VkDescriptorSetAllocateInfo*, VkHandle*)) \
  X(void, vkUpdateDescriptorSets,                                                               \
    (VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t, const void*))                   \
  X(VkResult, vkCreateCommandPool,                                                              \
    (VkDevice, const VkCommandPoolCreateInfo*, const void*, VkHandle*))                         \
  X(void, vkDestroyCommandPool, (VkDevice, VkHandle, const void*))                              \
  X(VkResult, vkAllocateCommandBuffers,                                                         \
    (VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*))                           \
  X(VkResult, vkBeginCommandBuffer, (VkCommandBuffer, const VkCommandBufferBeginInfo*))         \
  X(VkResult, vkEndCommandBuffer, (VkCommandBuffer))                                            \
  X(void, vkCmdBindPipeline, (VkCommandBuffer, uint32_t, VkHandle))                             \
  X(void, vkCmdBindDescriptorSets, (VkCommandBuffer, uint32_t, VkHandle, uint32_t, uint32_t,    \
                                    const VkHandle*, uint32_t, const uint32_t*))                \
  X(void, vkCmdPushConstants, (VkCommandBuffer, VkHandle, uint32_t, uint32_t, uint32_t, const void*)) \
  X(void, vkCmdDispatch, (VkCommandBuffer, uint32_t, uint32_t, uint32_t))                       \
  X(void, vkCmdCopyBuffer, (VkCommandBuffer, VkHandle, VkHandle, uint32_t, const VkBufferCopy*)) \
  X(void, vkCmdPipelineBarrier, (VkCommandBuffer, uint32_t, uint32_t, uint32_t, uint32_t,       \
                                 const VkMemoryBarrier*, uint32_t, const void*, uint32_t, const void*)) \
  X(VkResult, vkCreateFence, (VkDevice, const VkFenceCreateInfo*, const void*, VkHandle*))      \
  X(void, vkDestroyFence, (VkDevice, VkHandle, const void*))                                    \
  X(VkResult, vkResetFences, (VkDevice, uint32_t, const VkHandle*))                             \
  X(VkResult, vkWaitForFences, (VkDevice, uint32_t, const VkHandle*, uint32_t, uint64_t))       \
  X(VkResult, vkQueueSubmit, (VkQueue, uint32_t, const VkSubmitInfo*, VkHandle))

#endif
