-- Resolve ends a hold by evidence.
--
-- KEYS: generation, writes, holds of the hold's owner, presumed, hold, owners,
-- unattributed, log; per leg the account, the windows that count, the charged one last, and
-- its tally.
-- ARGV: generation, writes, caller, contents, windows, outcome (s v p, or c: corrected),
-- amount, ref, mode ('', sweep: only for a dead owner, abandon: it was never sent),
-- owner of the hold, id, operation, legs, provider, whether people did it (1), who, why;
-- per leg as read below.
local LEG = 6
local outcome, amount, mode, legs = ARGV[6], num(ARGV[7]), ARGV[9], tonumber(ARGV[13])

local stop = guard()
if stop then return stop end
local h = redis.call('HMGET', KEYS[5], 'legs', 'windows', 'state', 'said', 'amount', 'corrected', 'at', 'alerts', 'told')
local state, said, first, corrected = h[3], h[4] or '', num(h[5]), h[6]
if not h[1] then return {'unknown'} end
if h[1] ~= ARGV[4] or h[2] ~= ARGV[5] then return {'other'} end
if mode ~= '' and state ~= 'h' then return {'unknown'} end
if mode == 'sweep' then
  local alive = redis.call('ZSCORE', KEYS[6], ARGV[10])
  if alive and tonumber(alive) > NOW then return {'unknown'} end
end

-- What is said now must not contradict what is known.
local news
if state == 'h' then
  if outcome == 'c' then return {'inflight'} end
  news = true
elseif outcome == 'c' then
  news = corrected ~= ARGV[7]
elseif outcome == said and (outcome == 'v' or ARGV[7] == h[5]) then
  news = false
elseif state == 'p' and (outcome ~= 'p' or less(first, amount)) then
  news = true
else
  return {'conflict', said, h[5]}
end

local was, wasAmount = state, first -- that count before
if corrected then was, wasAmount = 's', num(corrected) end
local is, isAmount = outcome, amount
if outcome == 'c' then is = 's' end
if not news then is, isAmount = was, wasAmount end

local plan, k, a = {}, 9, 18
local over, delta, money, late = ZERO, ZERO, false, state == 'p'
for i = 1, legs do
  local leg = {
    name = ARGV[a], held = num(ARGV[a + 1]), unit = ARGV[a + 2], id = ARGV[a + 3], ends = tonumber(ARGV[a + 4]),
    windows = tonumber(ARGV[a + 5]), account = KEYS[k],
  }
  leg.key, leg.tally = KEYS[k + leg.windows], KEYS[k + leg.windows + 1]
  leg.before = was == 'h' and leg.held or cost(leg.held, leg.unit, was, wasAmount)
  leg.after = cost(leg.held, leg.unit, is, isAmount)
  over = larger(over, sub(leg.after, leg.held))
  if i == 1 or (not money and leg.unit ~= 'c') then delta, money = sub(leg.after, leg.before), leg.unit ~= 'c' end
  late = late or NOW >= leg.ends
  if news then
    local w = window(leg.key)
    leg.lost = not w.exists
    if not leg.lost then
      count(w, sub, leg.held, leg.unit, was, wasAmount)
      if less(sub(MOST, leg.after), used(w)) then return {'overflow', i - 1} end
      count(w, add, leg.held, leg.unit, is, isAmount)
      for _, f in ipairs({'s', 'p', 'h', 'over', 'floor'}) do w[f] = larger(ZERO, w[f]) end
      w.open, w.unknown = math.max(0, w.open), math.max(0, w.unknown)
    end
    leg.window, leg.spent, leg.fired = w, ZERO, w.fired
    leg.acc = redis.call('HMGET', leg.account, 'alerts', 'limit', 'override', 't', 't1', 'n1', 'b1', 't2', 'n2', 'b2', 't3', 'n3', 'b3', 'cur', 'from', 'till', 'since')
    leg.cur, leg.from, leg.till, leg.since = leg.acc[14], leg.acc[15], leg.acc[16], leg.acc[17]
    for j = k + 1, k + leg.windows - 1 do
      local o = redis.call('HMGET', KEYS[j], 's', 'p', 'fired')
      leg.spent, leg.fired = add(leg.spent, add(num(o[1]), num(o[2]))), math.max(leg.fired, tonumber(o[3] or '0'))
    end
  end
  plan[i] = leg
  a, k = a + LEG, k + 2 + leg.windows
end

local own, alerts = {}, {}
if not news then
  for i, leg in ipairs(plan) do own[i] = redis.call('HGET', leg.key, 'o' .. ARGV[3]) or '0' end
  -- The same operation again: the answer was lost, and with it what it told.
  local op, told = string.match(h[8] or '', '^(%S+) (.*)$')
  if op == ARGV[12] then
    for i, p, spent, limit in string.gmatch(told, '(%d+) (%d+) (%d+) (%d+);') do alerts[#alerts + 1] = {i, p, spent, limit} end
  end
  return {'ok', tonumber(redis.call('HGET', KEYS[2], 'n') or '0'), NOW, own, str(over), '0', 0, alerts, state}
end

-- What the budget used lately: Trend of package budget.
local SPANS = {900000, 3600000, 86400000}
local function trend(leg)
  local f = leg.acc
  local set = {'t', tonumber(f[4] or '0') + (is == 's' and 1 or 0)}
  for i, span in ipairs(SPANS) do
    local slot, old = math.floor(NOW / span), tonumber(f[i * 3 + 2] or '0')
    local now, past = num(f[i * 3 + 3]), num(f[i * 3 + 4])
    if slot == old + 1 then now, past = ZERO, now elseif slot > old then now, past = ZERO, ZERO else slot = old end
    for _, v in ipairs({'t' .. i, slot, 'n' .. i, str(add(now, leg.after)), 'b' .. i, str(past)}) do set[#set + 1] = v end
  end
  redis.call('HSET', leg.account, unpack(set))
end

-- Thresholds that settled and presumed together reached for the first time.
local function alert(i, leg)
  local acc = leg.acc
  if not acc[1] or acc[1] == '' then return end
  local spent, fired = add(leg.spent, add(leg.window.s, leg.window.p)), leg.fired
  local limit = acc[3] or acc[2]
  for percent in string.gmatch(acc[1], '%d+') do
    local p = tonumber(percent)
    if p > fired and not less(times(spent, 100), times(num(limit), p)) then
      leg.window.fired = math.max(leg.window.fired, p)
      alerts[#alerts + 1] = {i - 1, p, str(spent), limit}
    end
  end
end

-- The sets come first: should a key be of another type, nothing is written.
if state == 'h' then redis.call('ZREM', KEYS[3], ARGV[11]) end
if is == 'p' then
  redis.call('ZADD', KEYS[4], h[7], ARGV[11])
  if redis.call('PTTL', KEYS[4]) < 0 then redis.call('PEXPIRE', KEYS[4], 34560000000) end -- 400 days
elseif state == 'h' or state == 'p' then
  redis.call('ZREM', KEYS[4], ARGV[11])
  redis.call('PEXPIRE', KEYS[5], 900000) -- an ended hold is known for 15 minutes
end
if outcome == 'c' then
  redis.call('HSET', KEYS[5], 'state', 's', 'corrected', ARGV[7])
else
  redis.call('HSET', KEYS[5], 'state', outcome, 'said', outcome, 'amount', ARGV[7])
end
if ARGV[8] ~= '' then redis.call('HSET', KEYS[5], 'ref', ARGV[8]) end
if mode == 'abandon' then redis.call('HSET', KEYS[5], 'abandoned', 1) end
for i, leg in ipairs(plan) do
  local by = sub(leg.after, leg.before)
  if ARGV[10] ~= ARGV[3] and less(by, ZERO) then by = ZERO end -- it never was the caller's
  if leg.lost and leg.id == leg.cur then
    own[i] = 'by ' .. str(by) -- the next hold finds the loss, and the caller reports it
  elseif leg.lost then
    own[i] = 'by ' .. str(by)
    redis.call('HSET', KEYS[7], 's', str(add(num(redis.call('HGET', KEYS[7], 's')), leg.after)))
  else
    if state == 'h' and is ~= 'v' then trend(leg) end
    alert(i, leg)
    if leg.since then tell(leg, string.sub(h[9] or '', i, i) == '1' and ARGV[14] or '', was, wasAmount, is, isAmount) end
    leg.window.own = add(leg.window.own, by)
    save(leg.key, leg.window)
    own[i] = str(leg.window.own)
  end
end

if ARGV[15] == '1' then
  redis.pcall('XADD', KEYS[8], 'MAXLEN', '~', 10000, '*', 'what', 'correct', 'provider', ARGV[14], 'hold', ARGV[11], 'to', str(delta),
    'who', ARGV[16], 'why', ARGV[17])
end
if #alerts > 0 then
  local told = ARGV[12] .. ' '
  for _, v in ipairs(alerts) do told = told .. table.concat(v, ' ') .. ';' end
  redis.call('HSET', KEYS[5], 'alerts', told)
end
return {'ok', redis.call('HINCRBY', KEYS[2], 'n', 1), NOW, own, str(over), str(delta), late and 1 or 0, alerts, state}
