package budget

// Admits returns the error with which [Memory.Hold] would refuse h now, or nil. It takes
// nothing and keeps no record, so that a caller can be told before it waits for its turn;
// only Hold decides. Notices wait for the next Hold or Resolve. It never waits, and needs
// no ID.
func (m *Memory) Admits(h Hold) error {
	if h.ID == (HoldID{}) {
		h.ID.Seq = 1
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.blank()
	defer m.recycle(r)
	_, _, err := m.admit(r, &h, m.read())
	return err
}
