-- All numbers are whole and below 2^53: instants in microseconds, tokens in millionths,
-- factors in millionths.
local TIME = redis.call('TIME')
local NOW = tonumber(TIME[1]) * 1000000 + tonumber(TIME[2])
local ONE, SECOND = 1000000, 1000000

local function int(s) return tonumber(s or '0') or 0 end
local function put(x) return string.format('%.0f', x) end

-- The slow factor at an instant: every second gives 2 % back.
local function factor(s, at)
  if s.slow == 0 then return ONE end
  return math.min(ONE, s.slow + 20000 * math.max(0, math.floor((at - s.slowed) / SECOND)))
end

-- step is when the factor changes next after an instant, or nil.
local function step(s, at)
  if factor(s, at) == ONE then return nil end
  return s.slowed + (math.floor(math.max(0, at - s.slowed) / SECOND) + 1) * SECOND
end

-- earned is what n per period earn between two instants.
local function earned(s, n, per, from, to)
  local sum = 0
  while from < to do
    local stop = math.min(to, step(s, from) or to)
    sum = sum + math.floor((stop - from) * n * factor(s, from) / per)
    from = stop
  end
  return sum
end

-- due is when the missing tokens are earned.
local function due(s, n, per, from, missing)
  while true do
    local stop, rate = step(s, from), n * factor(s, from)
    local at = from + math.ceil(missing * per / rate)
    if not stop or at <= stop then return at end
    missing, from = missing - math.floor((stop - from) * rate / per), stop
  end
end

-- load reads a scope and what its rates have.
local FIELDS = {'n', 'seen', 'rates', 'gate', 'cap', 'upto', 'base', 'slow', 'slowed', 'drained', 'cause'}
local function load(key, rates)
  local names = {unpack(FIELDS)}
  for _, r in ipairs(rates) do
    local i = #names
    names[i + 1], names[i + 2], names[i + 3], names[i + 4] = 'level' .. r.id, 'at' .. r.id, 'next' .. r.id, 'paced' .. r.id
  end
  local f = redis.call('HMGET', key, unpack(names))
  local s = {
    key = key, known = f[3] and true or false, n = int(f[1]), gate = int(f[4]), cap = int(f[5]), upto = int(f[6]), base = int(f[7]),
    slow = int(f[8]), slowed = int(f[9]), drained = int(f[10]), cause = f[11] or '', rates = rates, was = f,
  }
  for i, r in ipairs(rates) do
    local k = 8 + 4 * i
    r.next, r.paced = int(f[k + 2]), int(f[k + 3])
    if f[k] then
      r.level, r.at = math.min(int(f[k]), r.burst * ONE), int(f[k + 1])
    elseif s.known then -- a rate that is new to a known scope begins empty, with its last turn
      r.level, r.at = 0, int(f[2])
    else
      r.level, r.at = r.burst * ONE, NOW
    end
  end
  return s
end

-- level is what a bucket has at an instant that is not before its own.
local function level(s, r, at)
  if at <= r.at then return r.level end
  return math.min(r.burst * ONE, r.level + earned(s, r.n, r.per, r.at, at))
end

-- open lets the scope go on at an instant.
local function open(s, at)
  s.drained = s.n
  local tokens = false
  for _, r in ipairs(s.rates) do
    if r.burst > 0 then
      tokens = true
      local from = math.max(at, r.at)
      r.level, r.at = math.min(ONE, level(s, r, from)), from
    end
  end
  for _, r in ipairs(s.rates) do
    if r.strict and not tokens then r.next, r.paced = at, at + r.per end
  end
end

local function refresh(s)
  if s.gate > 0 and s.gate <= NOW then
    local at = s.gate
    s.gate, s.cause = 0, ''
    open(s, at)
  end
  if s.cap > 0 and s.cap <= NOW then
    local at, shut = s.cap, s.n >= s.upto
    s.cap, s.upto, s.base = 0, 0, 0
    if shut then open(s, at) end
  end
  if s.slow > 0 and factor(s, NOW) == ONE then s.slow, s.slowed = 0, 0 end
end

-- save writes what changed of a scope, which expires when it is as good as new. Who caps
-- a scope that nobody asked for does not know its rates.
local function save(s)
  local set = {'n', put(s.n), 'seen', put(NOW)}
  local function change(name, was, now)
    if now ~= (was or '0') then set[#set + 1], set[#set + 2] = name, now end
  end
  for i = 4, 10 do
    local v = s[FIELDS[i]]
    if v ~= 0 or s.was[i] then change(FIELDS[i], s.was[i], put(v)) end
  end
  change('cause', s.was[11] or '', s.cause)
  local last, names = math.max(NOW, s.gate, s.cap), {}
  if s.slow > 0 then last = math.max(last, s.slowed + 50 * SECOND) end
  for i, r in ipairs(s.rates) do
    local k = 8 + 4 * i
    if r.burst > 0 then
      change('level' .. r.id, s.was[k] or '', put(r.level))
      change('at' .. r.id, s.was[k + 1] or '', put(r.at))
      last = math.max(last, due(s, r.n, r.per, math.max(NOW, r.at), math.max(0, r.burst * ONE - r.level)))
    end
    if r.next > 0 then change('next' .. r.id, s.was[k + 2], put(r.next)) end
    if r.paced > 0 then change('paced' .. r.id, s.was[k + 3], put(r.paced)) end
    if r.strict then last = math.max(last, NOW + 2 * r.per, r.paced) end
    names[i] = r.text
  end
  if s.known then change('rates', s.was[3] or '', table.concat(names, ';')) end
  redis.call('HSET', s.key, unpack(set))
  redis.call('PEXPIREAT', s.key, put(math.ceil(last / 1000) + 60000))
end

-- read takes the rates of a leg from the arguments, from index a on, and the keys of its
-- windows from index k on.
local function read(a, k)
  local rates, count = {}, tonumber(ARGV[a])
  a = a + 1
  for i = 1, count do
    local r = {n = tonumber(ARGV[a]), per = tonumber(ARGV[a + 1]), burst = tonumber(ARGV[a + 2]), strict = ARGV[a + 3] == '1', id = ARGV[a + 4]}
    r.text = table.concat(ARGV, ' ', a, a + 4)
    if r.strict then r.list, k = KEYS[k], k + 1 end
    rates[i], a = r, a + 5
  end
  return rates, a, k
end

-- A strict window of more than 1,024 turns counts them in groups, each of which leaves
-- with the latest of its turns: it admits less, never more.
local function group(r) return math.ceil(r.n / 1024) end
