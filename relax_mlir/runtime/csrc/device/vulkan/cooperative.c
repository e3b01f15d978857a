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

/* Whether a kernel multiplies matrices of i8, which products say to be signed, or else of f16. */
static int multiplies(const RxKernel* kernel, int are_bytes) {
  const uint32_t *word = (const uint32_t*)kernel->code + 5, opcode = 4459;
  const uint32_t* end = (const uint32_t*)kernel->code + kernel->code_bytes / 4;
  for (; word < end; word += *word >> 16)
    if ((*word & 0xFFFF) == opcode && (*word >> 16 == 7) == are_bytes) return 1;
  return 0;
}

/* Whether the device multiplies matrices of f16, or of i8, of a shape; `known` gets those it does. */
static int has_shape(const VkCooperativeMatrixProperties* found, uint32_t count, int are_bytes,
                     const char* wanted, char known[160]) {
  uint32_t side = are_bytes ? VK_COMPONENT_I8 : VK_COMPONENT_F16;
  uint32_t sum = are_bytes ? VK_COMPONENT_I32 : VK_COMPONENT_F32;
  for (uint32_t i = 0; i < count; i++) {
    const VkCooperativeMatrixProperties* x = &found[i];
    char shape[40];
    if (x->A != side || x->B != side || x->C != sum || x->result != sum ||
        x->scope != VK_SCOPE_SUBGROUP || x->saturates)
      continue;
    snprintf(shape, sizeof shape, "%ux%ux%u", x->rows, x->columns, x->depth);
    size_t length = strlen(shape), used = strlen(known);
    if (!strncmp(shape, wanted, length) && (!wanted[length] || wanted[length] == '/')) return 1;
    snprintf(known + used, 160 - used, "%s%s", used ? ", " : "", shape);
  }
  return 0;
}

/* Whether the device multiplies matrices as the target says; if not, the error has what it does. */
static const char* check_shapes(void) {
  static VkCooperativeMatrixProperties found[MOST_SHAPES];
  VkResult (*list)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixProperties*);
  const char* shape = strchr(rx_devices[own - states].name, ':');
  uint32_t count = MOST_SHAPES;
  *(void**)&list = vk.vkGetInstanceProcAddr(
      own->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  for (uint32_t i = 0; i < count; i++)
    found[i] = (VkCooperativeMatrixProperties){.sType = 1000506001};
  VkResult result = list ? list(own->physical, &count, found) : VK_ERROR_INCOMPATIBLE_DRIVER;
  if (result < 0) return failed("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", result);
  for (int are_bytes = 0; are_bytes < 2; are_bytes++, shape = shape ? strchr(shape, '/') : NULL)
    for (int32_t k = 0; k < rx_num_kernels; k++) {
      char known[160] = "";
      if (!is_own(&rx_kernels[k]) || !multiplies(&rx_kernels[k], are_bytes)) continue;
      if (shape && has_shape(found, count, are_bytes, shape + 1, known)) continue;
      return SAY("the subgroups of '%.80s' multiply no matrices of %s of the shape in '%.40s', but "
                 "%s, with sums of %s, as the kernel '%.100s' needs: compile for %s'vulkan'",
                 own->properties.deviceName, are_bytes ? "i8" : "f16", rx_devices[own - states].name,
                 *known ? known : "none", are_bytes ? "i32" : "f32", rx_kernels[k].name,
                 *known ? "another shape or for " : "");
    }
  return NULL;
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
