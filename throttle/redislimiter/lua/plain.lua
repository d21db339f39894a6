-- Most turns need one bucket that nothing else limits. Its scope is eight numbers and the
-- description of the legs that it was last asked for: when that is the same again the turn
-- is given here, before the tables and functions of lib.lua are made, which takes longer
-- than the turn. The result is that of turn.lua.
do
  local raw = redis.call('GET', KEYS[1])
  if raw and string.sub(raw, 65) == ARGV[3] then
    local n, drained, had, at, weight, turns, per, full = struct.unpack('<dddddddd', raw)
    if at > NOW + LATEST then at = NOW end
    local start = at
    if start < NOW then start = NOW end
    local level = math.min(full, had + math.floor((start - at) * turns * ONE / per))
    if level < weight then
      start = start + math.ceil((weight - level) * per / (turns * ONE))
      level = math.min(full, had + math.floor((start - at) * turns * ONE / per))
    end
    if start > NOW + ARGV[2] then return {1, start, NOW, 0} end
    n, level = n + ARGV[1], level - ARGV[1] * weight
    local last = math.ceil((start + math.ceil((full - level) * per / (turns * ONE))) / 1000) + 60000
    redis.call('SET', KEYS[1], struct.pack('<dddddddd', n, drained, level, start, weight, turns, per, full) .. ARGV[3], 'PXAT', last)
    return {0, start, NOW, 0, n - ARGV[1] + 1, n}
  end
end
