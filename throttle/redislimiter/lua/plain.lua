-- Most turns need one bucket that nothing else limits. Its scope is nine numbers and the
-- description of the legs that it was last asked for: when that is the same again the turn
-- is given here, before the tables and functions of lib.lua are made, which takes longer
-- than the turn. The result is that of turn.lua, but a turn that starts now is told by two
-- numbers: now, and the count of grants with the last turn. What a turn changes comes first
-- in the value, so that no more is written, and its expiry is set once a minute.
do
  local raw = redis.call('GET', KEYS[1])
  local n, had, at, expires, drained, weight, turns, per, full
  if raw and string.sub(raw, 73) == ARGV[3] then
    n, had, at, expires, drained, weight, turns, per, full = struct.unpack('<ddddddddd', raw)
  end
  if n and at <= NOW + LATEST then -- else the clock was set back
    local floor, ceil, want = math.floor, math.ceil, ARGV[1] + 0
    local start, level = at, had
    if start < NOW then
      start, level = NOW, had + floor((NOW - at) * turns * ONE / per)
      if level > full then level = full end
    end
    if level < weight then
      start = start + ceil((weight - level) * per / (turns * ONE))
      level = had + floor((start - at) * turns * ONE / per)
      if level > full then level = full end
    end
    if start > NOW and start > NOW + ARGV[2] then return {1, start, NOW, 0} end
    n, level = n + want, level - want * weight
    local last = ceil((start + ceil((full - level) * per / (turns * ONE))) / 1000) + 60000
    if last <= expires then
      redis.call('SETRANGE', KEYS[1], 0, struct.pack('<ddd', n, level, start))
    else
      expires = last + 60000
      local value = struct.pack('<ddddddddd', n, level, start, expires, drained, weight, turns, per, full) .. ARGV[3]
      redis.call('SET', KEYS[1], value, 'PXAT', expires)
    end
    if start == NOW then return {NOW, n} end
    return {0, start, NOW, 0, n - want + 1, n}
  end
end
