package throttle

// ranked is an element of a pq: it knows its order and keeps its position.
type ranked[T any] interface {
	before(T) bool
	moved(to int)
}

// pq is a binary heap whose elements know where they are, so that any of them can be
// moved or removed in O(log n).
type pq[T ranked[T]] []T

func (q *pq[T]) push(e T) {
	*q = append(*q, e)
	e.moved(len(*q) - 1)
	q.up(len(*q) - 1)
}

func (q *pq[T]) remove(i int) {
	last := len(*q) - 1
	q.swap(i, last)
	(*q)[last].moved(-1)
	var none T
	(*q)[last] = none
	*q = (*q)[:last]
	if i < last {
		q.fix(i)
	}
}

func (q *pq[T]) fix(i int) {
	if !q.down(i) {
		q.up(i)
	}
}

func (q *pq[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !(*q)[i].before((*q)[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *pq[T]) down(i int) bool {
	from := i
	for {
		child := 2*i + 1
		if child >= len(*q) {
			break
		}
		if right := child + 1; right < len(*q) && (*q)[right].before((*q)[child]) {
			child = right
		}
		if !(*q)[child].before((*q)[i]) {
			break
		}
		q.swap(i, child)
		i = child
	}
	return i > from
}

func (q *pq[T]) swap(i, j int) {
	s := *q
	s[i], s[j] = s[j], s[i]
	s[i].moved(i)
	s[j].moved(j)
}
