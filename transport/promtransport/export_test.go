package promtransport

// Forget makes the next scrape read the state anew.
func (m *Metrics) Forget() {
	m.reading.Lock()
	defer m.reading.Unlock()
	m.last = snapshot{}
}
