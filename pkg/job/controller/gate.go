package controller

import "sync"

// gate is passed once it is closed.
type gate struct {
	once sync.Once
	done chan struct{}
}

func newGate() *gate { return &gate{done: make(chan struct{})} }

func (g *gate) close() { g.once.Do(func() { close(g.done) }) }

func (g *gate) passed() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}
