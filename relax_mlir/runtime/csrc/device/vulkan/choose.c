/* The loader, the instance, and the device with the features that kernels need. */

static const char* load(void) {
  const char* path = getenv("RELAX_VULKAN_LOADER");
  own->loader = dlopen(path ? path : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!own->loader)
    return SAY("there is no Vulkan loader: %.300s; packages such as libvulkan1 have it "
               "(RELAX_VULKAN_LOADER names another file)", dlerror());
  *(void**)&vk.vkGetInstanceProcAddr = dlsym(own->loader, "vkGetInstanceProcAddr");
  if (!vk.vkGetInstanceProcAddr) return "the Vulkan loader has no vkGetInstanceProcAddr";
#define LOOK(result, name, types)                                      \
  *(void**)&vk.name = vk.vkGetInstanceProcAddr(own->instance, #name); \
  if (!vk.name) return "the Vulkan loader has no " #name "; Vulkan 1.1 is needed";
  VULKAN_GLOBAL(LOOK)
  VkApplicationInfo application = {.apiVersion = 1u << 22 | 1u << 12};
  VkInstanceCreateInfo info = {.sType = 1, .pApplicationInfo = &application};
  VkResult result = vk.vkCreateInstance(&info, NULL, &own->instance);
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

/* Takes the best of those that are left, whose ranks are not 0; 0: none is. */
static int32_t take_best(const VkPhysicalDevice* found, int32_t* ranks, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (ranks[i] > ranks[best]) best = i;
  if (!count || !ranks[best]) return 0;
  own->physical = found[best];
  ranks[best] = 0;
  return 1;
}

/* The best device, or the next best for one of a module that has several of Vulkan. */
static const char* choose(void) {
  VkPhysicalDevice found[16];
  int32_t ranks[16], ordinal = rx_devices[own - states].ordinal, taken = 0;
  uint32_t count = 16;
  const char* wanted = getenv("RELAX_VULKAN");
  VkResult result = vk.vkEnumeratePhysicalDevices(own->instance, &count, found);
  if (result < 0) return failed("vkEnumeratePhysicalDevices", result);
  for (uint32_t i = 0; i < count; i++) ranks[i] = rank(found[i], wanted);
  while (taken <= ordinal && take_best(found, ranks, count)) taken++;
  if (!taken && wanted)
    return SAY("Vulkan finds no device of 1.1 that computes whose name has '%.100s', as "
               "RELAX_VULKAN says, among %u devices", wanted, count);
  if (!taken)
    return SAY("Vulkan finds no device of 1.1 that computes among %u devices", count);
  if (taken <= ordinal)
    return SAY("Vulkan finds %d of the devices that the module is for, which needs %d", taken,
               ordinal + 1);
  own->family = (uint32_t)compute_family(own->physical);
  vk.vkGetPhysicalDeviceProperties(own->physical, &own->properties);
  vk.vkGetPhysicalDeviceMemoryProperties(own->physical, &own->memory_types);
  return NULL;
}

/* What a device can do, and whether kernels may be made that need it. */
typedef struct {
  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDevice16BitStorageFeatures bits16;
  VkPhysicalDevice8BitStorageFeatures bits8;
  VkPhysicalDeviceShaderFloat16Int8Features small;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory; /* these three only if kernels have matrices */
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups;
  VkPhysicalDeviceCooperativeMatrixFeatures matrices;
} Features;

static void chain(Features* features) {
  memset(features, 0, sizeof *features);
  features->core = (VkPhysicalDeviceFeatures2){1000059000, &features->bits16, {0}};
  features->bits16 = (VkPhysicalDevice16BitStorageFeatures){1000083000, &features->bits8, 0, {0}};
  features->bits8 = (VkPhysicalDevice8BitStorageFeatures){1000177000, &features->small, 0, {0}};
  features->small = (VkPhysicalDeviceShaderFloat16Int8Features){1000082000, NULL, 0, 0};
  if (!has_matrices()) return;
  features->small.pNext = &features->memory;
  features->memory =
      (VkPhysicalDeviceVulkanMemoryModelFeatures){1000211000, &features->subgroups, 0, {0}};
  features->subgroups =
      (VkPhysicalDeviceSubgroupSizeControlFeatures){1000225002, &features->matrices, 0, 0};
  features->matrices = (VkPhysicalDeviceCooperativeMatrixFeatures){1000506000, NULL, 0, {0}};
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
    case 5345: return features->memory.vulkanMemoryModel ? NULL : "vulkanMemoryModel";
    case VK_COOPERATIVE:
      if (!features->subgroups.computeFullSubgroups) return "computeFullSubgroups";
      return features->matrices.cooperativeMatrix ? NULL : "cooperativeMatrix";
    default: return NULL;
  }
}

/* Refuses kernels that the device lacks features for. */
static const char* check(const Features* features) {
  for (int32_t k = 0; k < rx_num_kernels; k++) {
    if (!is_own(&rx_kernels[k])) continue;
    const uint32_t* word = (const uint32_t*)rx_kernels[k].code + 5;
    for (; (*word & 0xFFFF) == 17; word += 2) {
      const char* missing = lacks(features, word[1]);
      if (missing)
        return SAY("the device '%.100s' has no %s, which the kernel '%.100s' needs",
                   own->properties.deviceName, missing, rx_kernels[k].name);
    }
  }
  return NULL;
}

/* Asks for which floats the device keeps infinities, NaN and signs of zeros. */
static void ask_floats(int has_controls) {
  static VkPhysicalDeviceProperties2 properties;
  VkPhysicalDeviceFloatControlsProperties floats = {.sType = 1000197000};
  properties.sType = 1000059001;
  properties.pNext = has_controls ? &floats : NULL;
  vk.vkGetPhysicalDeviceProperties2(own->physical, &properties);
  memcpy(own->keeps_special, floats.keepsSpecial, sizeof own->keeps_special);
}

static const char* create_device(void) {
  static VkExtensionProperties found[512];
  const char* wanted[] = {"VK_KHR_8bit_storage", "VK_KHR_shader_float16_int8",
                          "VK_KHR_shader_float_controls", "VK_KHR_vulkan_memory_model",
                          "VK_EXT_subgroup_size_control", "VK_KHR_cooperative_matrix"};
  const char* enabled[6];
  int has_controls = 0, num_wanted = has_matrices() ? 6 : 3;
  uint32_t count = 512, num_enabled = 0;
  vk.vkEnumerateDeviceExtensionProperties(own->physical, NULL, &count, found);
  for (int w = 0; w < num_wanted; w++)
    for (uint32_t i = 0; i < count; i++)
      if (!strcmp(found[i].extensionName, wanted[w])) {
        enabled[num_enabled++] = wanted[w];
        has_controls |= w == 2;
      }
  ask_floats(has_controls);
  static Features features;
  chain(&features);
  vk.vkGetPhysicalDeviceFeatures2(own->physical, &features.core);
  const char* wrong = check(&features);
  if (!wrong && has_matrices()) wrong = check_shapes();
  if (!wrong && has_matrices()) wrong = choose_subgroups(features.subgroups.subgroupSizeControl);
  if (wrong) return wrong;
  uint32_t used[] = {VK_ROBUST_BUFFERS, VK_FLOAT64, VK_INT64, VK_INT16};
  static uint32_t all[VK_NUM_FEATURES];
  memcpy(all, features.core.features, sizeof all);
  memset(features.core.features, 0, sizeof all);
  for (int i = 0; i < 4; i++) features.core.features[used[i]] = all[used[i]];
  memset(features.bits16.rest, 0, sizeof features.bits16.rest);
  memset(features.bits8.rest, 0, sizeof features.bits8.rest);
  memset(features.memory.rest, 0, sizeof features.memory.rest);
  memset(features.matrices.rest, 0, sizeof features.matrices.rest);
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {2, NULL, 0, own->family, 1, &priority};
  VkDeviceCreateInfo info = {.sType = 3, .pNext = &features, .queueCreateInfoCount = 1,
                             .pQueueCreateInfos = &queue, .enabledExtensionCount = num_enabled,
                             .ppEnabledExtensionNames = enabled};
  TRY(vk.vkCreateDevice(own->physical, &info, NULL, &own->device), "vkCreateDevice");
  vk.vkGetDeviceQueue(own->device, own->family, 0, &own->queue);
  return NULL;
}
