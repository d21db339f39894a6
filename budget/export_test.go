package budget

// Keep makes the ledger keep only so many windows and ended holds. Zero: as always.
func (m *Memory) Keep(windows, ended int) { m.bounds = bounds{windows, ended} }
