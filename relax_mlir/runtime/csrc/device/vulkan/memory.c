/* Memory: a buffer for each allocation, and copies. */

/* The memory that a number is of, and its offset there; NULL: of none. */
static Memory* find(const void* address, int64_t bytes, uint64_t* offset) {
  uint64_t number = (uint64_t)(uintptr_t)address;
  int64_t low = 0, high = own->num_memories;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (own->memories[middle].begin <= number)
      low = middle + 1;
    else
      high = middle;
  }
  Memory* memory = low ? &own->memories[low - 1] : NULL;
  if (!memory || bytes < 0) return NULL;
  *offset = number - memory->begin;
  return (int64_t)*offset <= memory->bytes - bytes ? memory : NULL;
}

static const char NOT_THERE[] = "accesses memory that the device does not have";

/* The best type of memory among those that may be used; -1: none. */
static int32_t memory_type(uint32_t allowed, uint32_t needed, uint32_t liked) {
  int32_t found = -1;
  for (uint32_t i = 0; i < own->memory_types.memoryTypeCount; i++) {
    uint32_t flags = own->memory_types.memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & needed) != needed) continue;
    if ((flags & liked) == liked) return (int32_t)i;
    if (found < 0) found = (int32_t)i;
  }
  return found;
}

static VkResult make_memory(Memory* memory, int64_t bytes, int is_stage) {
  VkBufferCreateInfo info = {
      .sType = 12, .size = (VkDeviceSize)(bytes ? bytes : 4), .usage = VK_BUFFER_USAGE};
  VkResult result = vk.vkCreateBuffer(own->device, &info, NULL, &memory->buffer);
  if (result) return result;
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(own->device, memory->buffer, &needs);
  uint32_t host = VK_MEMORY_HOST_VISIBLE | VK_MEMORY_HOST_COHERENT;
  int32_t type = memory_type(needs.memoryTypeBits, is_stage ? host : VK_MEMORY_DEVICE_LOCAL,
                             is_stage ? host : host | VK_MEMORY_DEVICE_LOCAL);
  if (type < 0) type = memory_type(needs.memoryTypeBits, 0, VK_MEMORY_DEVICE_LOCAL);
  if (type < 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryAllocateInfo allocate = {5, NULL, needs.size, (uint32_t)type};
  result = vk.vkAllocateMemory(own->device, &allocate, NULL, &memory->memory);
  if (result) return result;
  result = vk.vkBindBufferMemory(own->device, memory->buffer, memory->memory, 0);
  uint32_t flags = own->memory_types.memoryTypes[type].propertyFlags;
  if (!result && (flags & host) == host)
    result = vk.vkMapMemory(own->device, memory->memory, 0, UINT64_MAX, 0, &memory->mapped);
  memory->bytes = bytes;
  return result;
}

static void* vulkan_alloc(int32_t device, int64_t bytes) {
  own = &states[device];
  if (own->is_lost) return NULL;
  if (own->num_memories == own->room) {
    int64_t room = own->room ? 2 * own->room : 64;
    Memory* more = realloc(own->memories, (size_t)room * sizeof *more);
    if (!more) return NULL;
    own->memories = more;
    own->room = room;
  }
  Memory memory = {.begin = own->next};
  if (make_memory(&memory, bytes, 0)) {
    destroy_memory(&memory);
    return NULL;
  }
  own->next += ((uint64_t)bytes / RX_DEVICE_ALIGNMENT + 2) * RX_DEVICE_ALIGNMENT;
  own->memories[own->num_memories++] = memory;
  return (void*)(uintptr_t)memory.begin;
}

static int64_t vulkan_free(int32_t device, void* data) {
  own = &states[device];
  uint64_t offset;
  Memory* memory = find(data, 0, &offset);
  if (!memory || offset) abort(); /* it is not the device's, or freed */
  finish();
  int64_t bytes = memory->bytes, after = own->memories + own->num_memories - (memory + 1);
  destroy_memory(memory);
  memmove(memory, memory + 1, (size_t)after * sizeof *memory);
  own->num_memories--;
  return bytes;
}

static const char* copy_buffer(const Memory* to, uint64_t at, const Memory* from, uint64_t begin,
                               int64_t bytes) {
  const char* wrong = record();
  if (wrong) return wrong;
  VkBufferCopy copy = {begin, at, (VkDeviceSize)bytes};
  vk.vkCmdCopyBuffer(own->recorder, from->buffer, to->buffer, 1, &copy);
  return NULL;
}

static const char* vulkan_copy(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  uint64_t at, begin;
  Memory *target = find(to, bytes, &at), *source = find(from, bytes, &begin);
  if (!target || !source) return NOT_THERE;
  return bytes ? copy_buffer(target, at, source, begin, bytes) : NULL;
}

/* Between the host and memory that it has no access to, by memory that it has. */
static const char* transfer(Memory* memory, uint64_t at, char* host, int64_t bytes, int is_up) {
  if (!own->stage.mapped) {
    VkResult result = make_memory(&own->stage, STAGE_BYTES, 1);
    if (result || !own->stage.mapped) {
      destroy_memory(&own->stage);
      memset(&own->stage, 0, sizeof own->stage);
      return result ? failed("an allocation for copies", result)
                    : "the device has no memory that the host has access to";
    }
  }
  for (int64_t done = 0; done < bytes; done += STAGE_BYTES) {
    int64_t part = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
    uint64_t there = at + (uint64_t)done;
    if (is_up) memcpy(own->stage.mapped, host + done, (size_t)part);
    const char* wrong = is_up ? copy_buffer(memory, there, &own->stage, 0, part)
                              : copy_buffer(&own->stage, 0, memory, there, part);
    if (!wrong) wrong = finish();
    if (wrong) return wrong;
    if (!is_up) memcpy(host + done, own->stage.mapped, (size_t)part);
  }
  return NULL;
}

static const char* vulkan_upload(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  uint64_t at;
  Memory* memory = find(to, bytes, &at);
  if (!memory) return NOT_THERE;
  const char* wrong = finish();
  if (wrong) return wrong;
  if (!memory->mapped) return transfer(memory, at, (char*)(uintptr_t)from, bytes, 1);
  memcpy((char*)memory->mapped + at, from, (size_t)bytes);
  return NULL;
}

static const char* vulkan_download(int32_t device, void* to, const void* from, int64_t bytes) {
  own = &states[device];
  uint64_t at;
  Memory* memory = find(from, bytes, &at);
  if (!memory) return NOT_THERE;
  const char* wrong = finish();
  if (wrong) return wrong;
  if (!memory->mapped) return transfer(memory, at, to, bytes, 0);
  memcpy(to, (char*)memory->mapped + at, (size_t)bytes);
  return NULL;
}
