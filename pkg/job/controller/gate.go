package controller

import "sync"

// gate can be passed once it is closed. Closing it again does nothing.
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
