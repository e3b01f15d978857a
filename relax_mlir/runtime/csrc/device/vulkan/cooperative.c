/* Matrices that subgroups multiply, of kernels for targets such as "vulkan:16x16x16".
 *
 * A group has 128 threads, of which four subgroups multiply: they may have 32 threads at most.
 */

enum { MOST_SHAPES = 64, MOST_SUBGROUP = 32, VK_COOPERATIVE = 6022 };

/* Whether code states a capability. */
static int has_capability(const RxKernel* kernel, uint32_t capability) {
  const uint32_t* word = (const uint32_t*)kernel->code + 5;
  for (; (*word & 0xFFFF) == 17; word += 2)
    if (word[1] == capability) return 1;
  return 0;
}

static int has_matrices(void) {
  for (int32_t k = 0; k < rx_num_kernels; k++)
    if (is_own(&rx_kernels[k]) && has_capability(&rx_kernels[k], VK_COOPERATIVE)) return 1;
  return 0;
}

/* Whether the device multiplies matrices as the target says; if not, the error has what it does. */
static const char* check_shape(void) {
  static VkCooperativeMatrixProperties found[MOST_SHAPES];
  VkResult (*list)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixProperties*);
  const char *wanted = rx_devices[own - states].name, *colon = strchr(wanted, ':');
  uint32_t count = MOST_SHAPES;
  char known[160] = "";
  *(void**)&list = vk.vkGetInstanceProcAddr(
      own->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  for (uint32_t i = 0; i < count; i++)
    found[i] = (VkCooperativeMatrixProperties){.sType = 1000506001};
  VkResult result = list ? list(own->physical, &count, found) : VK_ERROR_INCOMPATIBLE_DRIVER;
  if (result < 0) return failed("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", result);
  for (uint32_t i = 0; i < count; i++) {
    const VkCooperativeMatrixProperties* x = &found[i];
    char shape[40];
    if (x->A != VK_COMPONENT_F16 || x->B != VK_COMPONENT_F16 || x->C != VK_COMPONENT_F32 ||
        x->result != VK_COMPONENT_F32 || x->scope != VK_SCOPE_SUBGROUP || x->saturates)
      continue;
    snprintf(shape, sizeof shape, "%ux%ux%u", x->rows, x->columns, x->depth);
    if (colon && !strcmp(shape, colon + 1)) return NULL;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", shape);
  }
  return SAY("the subgroups of '%.100s' multiply no matrices of f16 of the shape in '%.40s', with "
             "sums of f32, but %s: compile for %s'vulkan'", own->properties.deviceName, wanted,
             *known ? known : "none", *known ? "another shape or for " : "");
}

/* Has subgroups of kernels with matrices be small enough. */
static const char* choose_subgroups(int has_control) {
  static VkPhysicalDeviceProperties2 properties;
  VkPhysicalDeviceSubgroupSizeControlProperties control = {.sType = 1000225000};
  VkPhysicalDeviceSubgroupProperties subgroup = {1000094000, &control, 0, 0, 0, 0};
  properties.sType = 1000059001;
  properties.pNext = &subgroup;
  vk.vkGetPhysicalDeviceProperties2(own->physical, &properties);
  own->subgroup = subgroup.size > MOST_SUBGROUP ? MOST_SUBGROUP : 0;
  if (!own->subgroup || (has_control && control.least <= MOST_SUBGROUP &&
                         control.stages & VK_SHADER_STAGE_COMPUTE))
    return NULL;
  return SAY("the subgroups of '%.100s' have %u threads, but kernels that multiply matrices need "
             "%d or fewer: compile for 'vulkan'", own->properties.deviceName, subgroup.size,
             MOST_SUBGROUP);
}
