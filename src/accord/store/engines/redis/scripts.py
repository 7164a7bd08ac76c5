"""What the server runs: each script is one step that nobody sees half of.

A script that fails in the middle is not rolled back, so all that can fail comes before the first write, and the first
write is one that a full server refuses. Keys are given, never made up inside: a Cluster that moves the slot
elsewhere then refuses a script before it begins.
"""

from accord.store.contract import KEPT_REVISIONS, TRIM_EVERY

FORMAT = 1

# What a user must be allowed, asked before anything is written; "none" is never there.
_RIGHTS = """
local function may(...)
  if redis.acl_check_cmd then return redis.acl_check_cmd(...) end
  local answer = redis.pcall(...)
  return not (type(answer) == 'table' and answer.err and string.find(answer.err, 'The user executing', 1, true))
end
local function forbidden(meta, log)
  for _, command in ipairs({
    -- Servers before 7.0 have to try: each of these fails, or does nothing, whatever is there.
    {'HSET', meta, 'none', '', 'odd'}, {'HDEL', meta, 'none'}, {'HKEYS', meta},
    {'ZADD', log, 'odd', 'none'}, {'ZREM', meta, 'none'},
    {'XADD', log, '0-0', 'none', ''}, {'XTRIM', log, 'odd', '0'}, {'UNLINK', meta .. ':none'},
    {'HGET', meta, 'none'}, {'HMGET', meta, 'none'}, {'TIME'}, {'ZRANGEBYLEX', log, 'odd', 'odd'},
    {'ZREVRANGEBYLEX', log, 'odd', 'odd'}, {'ZRANGE', log, '0', '0'},
    {'XRANGE', log, '-', '-'}, {'XREVRANGE', log, '-', '-'}, {'XREAD', 'STREAMS', log, '$'},
  }) do
    if not may(unpack(command)) then return command[1] end
  end
end
"""

# A new epoch is written into the log too, at the newest revision: so watches hear of it at once.
_NEW_EPOCH = """
local function start_epoch(epoch)
  local revision = redis.call('HGET', KEYS[1], 'revision')
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', '1')[1]
  local id = newest and newest[1] or revision .. '-0'
  local first, second = string.match(id, '(%d+)-(%d+)')
  local mark = string.format('%.0f', tonumber(second) + 1)
  redis.call('XADD', KEYS[2], first .. '-' .. mark, 'epoch', epoch)
  redis.call('HSET', KEYS[1], 'epoch', epoch)
end
"""

# Run on each new connection: makes the store if there is none, and finds out whether it lost something.
# meta, log; format, an epoch to use, replication id, run id, "1" if there was another before it, "1" if restarts
# lose nothing, epoch, revision and place in the log that the caller has seen
OPEN = (
    _RIGHTS
    + _NEW_EPOCH
    + """
local denied = forbidden(KEYS[1], KEYS[2])
if denied then return {'denied', denied} end
local fields = redis.call('HMGET', KEYS[1], 'format', 'line', 'run', 'safe', 'epoch', 'revision', 'floor')
local format, line, run, safe, epoch, revision, floor = unpack(fields)
if not format then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'epoch', ARGV[2], 'gen', '0', 'revision', '0', 'seq', '0',
    'floor', '0', 'made', '0', 'line', ARGV[3], 'run', ARGV[4], 'safe', ARGV[6])
elseif tonumber(format) > tonumber(ARGV[1]) then
  return {'format', format}
else
  local lost = false
  if line ~= ARGV[3] then
    local renamed = run == ARGV[4]
    lost = ARGV[5] == '1' or not (renamed or (safe == '1' and ARGV[6] == '1'))
  end
  if not lost and ARGV[7] == epoch and tonumber(ARGV[8]) > tonumber(floor) then
    local id = ARGV[8] .. '-' .. ARGV[9]
    lost = #redis.call('XRANGE', KEYS[2], id, id) == 0
  end
  if lost then start_epoch(ARGV[2]) end
  if line ~= ARGV[3] or run ~= ARGV[4] or safe ~= ARGV[6] then
    redis.call('HSET', KEYS[1], 'line', ARGV[3], 'run', ARGV[4], 'safe', ARGV[6])
  end
end
return redis.call('HMGET', KEYS[1], 'epoch', 'gen')
"""
)

# Begins every script that reads: what the caller's keys are made of must still be so. Its answer begins with epoch,
# revision, place in the log, seconds and microseconds, in one text, which is read faster than a list.
_READ = """
local facts = redis.call('HMGET', KEYS[1], 'gen', 'epoch', 'revision', 'seq', 'made', 'floor')
if facts[1] ~= ARGV[1] then return 'stale' end
local time = redis.call('TIME')
local out = {table.concat({facts[2], facts[3], facts[4], time[1], time[2]}, ' ')}
"""

# meta, heads, then for each that is wanted the items of its collection; gen, then collection and id ("": its head).
# Answers an item as it is stored, and in a list the collection's head, if that is wanted or there is no item.
GET = (
    _READ
    + """
for i = 2, #ARGV, 2 do
  local found = ARGV[i + 1] ~= '' and redis.call('HGET', KEYS[i / 2 + 2], ARGV[i + 1])
  out[#out + 1] = found or {redis.call('HGET', KEYS[2], ARGV[i])}
end
return out
"""
)

# meta, heads, ids, items; gen, collection, from, to, limit, "1" if from the end
LIST = (
    _READ
    + """
local command = ARGV[6] == '1' and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
local ids = redis.call(command, KEYS[3], ARGV[3], ARGV[4], 'LIMIT', '0', ARGV[5])
out[2] = redis.call('HGET', KEYS[2], ARGV[2])
out[3] = ids
out[4] = #ids > 0 and redis.call('HMGET', KEYS[4], unpack(ids)) or ids
return out
"""
)

# meta, names; gen, from, to, limit. Answers when the newest name came too.
NAMES = (
    _READ
    + """
out[2] = facts[5]
out[3] = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', '0', ARGV[4])
return out
"""
)

# meta, log; gen, revision. Answers where the history begins, and the newest place in the log.
FOLLOW = (
    _READ
    + """
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', '1')[1]
out[2] = facts[6]
out[3] = newest and newest[1] or '0-0'
return out
"""
)

# meta, log, heads, names, then items and ids of each collection; gen, epoch, how many collections, their names, how
# many checks, for each its collection's place, id and revision, and for each write its collection's place, its id,
# how many pieces its value has, the pieces. An id "+" is an append, "#N" the number of the N-th; a value's second
# piece, and every other after that, is such an N. No pieces: a delete.
COMMIT = (
    """
local facts = redis.call('HMGET', KEYS[1], 'gen', 'epoch', 'revision', 'seq')
if facts[1] ~= ARGV[1] then return 'stale' end
local names = tonumber(ARGV[3])
local heads = names > 0 and redis.call('HMGET', KEYS[3], unpack(ARGV, 4, 3 + names)) or {}
local at = 4 + names
local checks = tonumber(ARGV[at])
if checks > 0 and facts[2] ~= ARGV[2] then return 'conflict' end
for i = at + 1, at + 3 * checks, 3 do
  local place, id = tonumber(ARGV[i]), ARGV[i + 1]
  local found = heads[place]
  if id ~= '' then found = redis.call('HGET', KEYS[3 + 2 * place], id) end
  if (found and string.match(found, '^%d+') or '0') ~= ARGV[i + 2] then return 'conflict' end
end
at = at + 3 * checks + 1
if at > #ARGV then return {facts[3], facts[4], facts[2]} end

local lasts, numbers, ids, keys, seen = {}, {}, {}, {}, {}
local i = at
while i <= #ARGV do
  local place, id, pieces = tonumber(ARGV[i]), ARGV[i + 1], tonumber(ARGV[i + 2])
  local last = lasts[place] or tonumber(heads[place] and string.match(heads[place], '%d+$') or '0')
  if id == '+' then
    last = last + 1
    numbers[#numbers + 1] = last
    id = string.format('%016.0f', last)
  elseif string.byte(id) == 35 then
    local number = numbers[tonumber(string.sub(id, 2)) + 1]
    if pieces > 0 and number > last then last = number end
    id = string.format('%016.0f', number)
  elseif #id == 16 and not string.find(id, '%D') and id > string.format('%016.0f', last) then
    return {'never given', id}
  end
  lasts[place] = last
  ids[#ids + 1] = id
  local key = ARGV[3 + place] .. '/' .. id
  if not seen[key] then
    seen[key] = true
    keys[#keys + 1] = key
  end
  i = i + 3 + pieces
end

local revision = string.format('%.0f', tonumber(facts[3]) + 1)
local time = redis.call('TIME')
local seq = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('XADD', KEYS[2], revision .. '-' .. seq, 'keys', table.concat(keys, ' '))
redis.call('HSET', KEYS[1], 'revision', revision, 'seq', seq)
local n = 0
i = at
while i <= #ARGV do
  local place, pieces = tonumber(ARGV[i]), tonumber(ARGV[i + 2])
  n = n + 1
  if pieces == 0 then
    if redis.call('HDEL', KEYS[3 + 2 * place], ids[n]) == 1 then
      redis.call('ZREM', KEYS[4 + 2 * place], ids[n])
    end
  else
    local value = ARGV[i + 3]
    if pieces > 1 then
      local parts = {}
      for j = 0, pieces - 1 do
        local piece = ARGV[i + 3 + j]
        if j % 2 == 1 then piece = string.format('%.0f', numbers[tonumber(piece) + 1]) end
        parts[j + 1] = piece
      end
      value = table.concat(parts)
    end
    if redis.call('HSET', KEYS[3 + 2 * place], ids[n], revision .. ' ' .. value) == 1 then
      redis.call('ZADD', KEYS[4 + 2 * place], '0', ids[n])
    end
  end
  i = i + 3 + pieces
end
for place, last in pairs(lasts) do
  local name = ARGV[3 + place]
  redis.call('HSET', KEYS[3], name, revision .. ' ' .. string.format('%.0f', last))
  if not heads[place] then
    redis.call('ZADD', KEYS[4], '0', name)
    redis.call('HSET', KEYS[1], 'made', revision)
  end
end
"""
    + f"""
local floor = tonumber(revision) - {KEPT_REVISIONS}
if floor > 0 and floor % {TRIM_EVERY} == 0 then
  redis.call('XTRIM', KEYS[2], 'MINID', string.format('%.0f', floor + 1))
  redis.call('HSET', KEYS[1], 'floor', string.format('%.0f', floor))
end
"""
    + """
local out = {revision, seq, facts[2]}
for place, number in ipairs(numbers) do out[3 + place] = number end
return out
"""
)

# meta; a new name for what is to be loaded. Answers the fields of meta: some name loads that were cut short.
BEGIN_LOAD = """
local facts = redis.call('HMGET', KEYS[1], 'revision', 'loading')
if facts[1] ~= '0' then return 'full' end
if facts[2] and facts[2] ~= ARGV[1] then redis.call('HSET', KEYS[1], 'litter:' .. facts[2], '') end
redis.call('HSET', KEYS[1], 'loading', ARGV[1])
return redis.call('HKEYS', KEYS[1])
"""

# meta, heads, names, items, ids; the load's name, collection, its last number, then ids and values
LOAD = """
if redis.call('HGET', KEYS[1], 'loading') ~= ARGV[1] then return 'full' end
redis.call('HSET', KEYS[2], ARGV[2], '1 ' .. ARGV[3])
redis.call('ZADD', KEYS[3], '0', ARGV[2])
for i = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[4], ARGV[i], '1 ' .. ARGV[i + 1])
  redis.call('ZADD', KEYS[5], '0', ARGV[i])
end
return 'OK'
"""

# meta, log; the load's name. From here on it is the store.
END_LOAD = """
local facts = redis.call('HMGET', KEYS[1], 'revision', 'loading', 'gen')
if facts[3] == ARGV[1] then return 'OK' end
if facts[1] ~= '0' or facts[2] ~= ARGV[1] then return 'full' end
local time = redis.call('TIME')
local seq = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('XADD', KEYS[2], '1-' .. seq, 'loaded', '')
redis.call('HSET', KEYS[1], 'gen', ARGV[1], 'revision', '1', 'seq', seq, 'made', '1', 'floor', '1')
redis.call('HDEL', KEYS[1], 'loading')
return 'OK'
"""

# meta; the load's name. It has failed: nothing is added to it from here on.
GIVE_UP = """
if redis.call('HGET', KEYS[1], 'loading') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'litter:' .. ARGV[1], '')
  redis.call('HDEL', KEYS[1], 'loading')
end
return 'OK'
"""

# meta, names, heads, then items and ids of some collections; the name of a load that was cut short, and these. Answers
# some that are left, and with the last of them forgets the load.
FORGET = """
for i = 4, #KEYS do redis.call('UNLINK', KEYS[i]) end
for i = 2, #ARGV do redis.call('ZREM', KEYS[2], ARGV[i]) end
local left = redis.call('ZRANGE', KEYS[2], '0', '99')
if #left == 0 then
  redis.call('UNLINK', KEYS[2], KEYS[3])
  redis.call('HDEL', KEYS[1], 'litter:' .. ARGV[1])
end
return left
"""

# meta; anything. Something to wait for until it is where it should be.
TOUCH = "return redis.call('HSET', KEYS[1], 'touched', ARGV[1])"
