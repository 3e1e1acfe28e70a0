// Package feed passes the events of informers to an index of jobs.
// In: informers of Frameworks and of their pods, which may store their objects in any form. Out: an index that follows them.
package feed

import (
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job/listing"
)

// Feed connects informers to an index.
type Feed struct {
	Index *listing.Index
	// Brief reads a Framework from an informer's object; nil if the object isn't a Framework.
	Brief func(any) *listing.Brief
	// Pod reads a pod from an informer's object.
	Pod func(any) (Pod, bool)
	// Changed, which may be nil, is called after the index has a Framework's change. A job that is gone comes with gone.
	Changed func(b *listing.Brief, gone bool)
	// PodChanged, which may be nil, is called after the index has a pod's change.
	PodChanged func()
}

// Pod holds the fields of a pod that an index keeps.
type Pod struct {
	Framework string
	UID       types.UID
	Start     listing.Start
	Version   uint64
}

// Frameworks is the handler for an informer of Frameworks.
func (f *Feed) Frameworks() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: f.put, UpdateFunc: func(_, o any) { f.put(o) }, DeleteFunc: f.remove}
}

// Pods is the handler for an informer of pods.
func (f *Feed) Pods() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: f.pod, UpdateFunc: func(_, o any) { f.pod(o) }, DeleteFunc: f.podGone}
}

func (f *Feed) put(o any) {
	if b := f.Brief(o); b != nil {
		f.Index.Put(b)
		f.tell(b, false)
	}
}

func (f *Feed) remove(o any) {
	_, untold := o.(toolscache.DeletedFinalStateUnknown)
	if b := f.Brief(last(o)); b != nil {
		f.Index.Remove(b, !untold)
		f.tell(b, true)
	}
}

func (f *Feed) tell(b *listing.Brief, gone bool) {
	if f.Changed != nil {
		f.Changed(b, gone)
	}
}

func (f *Feed) pod(o any) {
	if p, ok := f.Pod(o); ok {
		f.Index.Pod(p.Framework, p.UID, p.Start, p.Version)
		f.tellPod()
	}
}

func (f *Feed) podGone(o any) {
	if p, ok := f.Pod(last(o)); ok {
		if _, untold := o.(toolscache.DeletedFinalStateUnknown); untold {
			p.Version = 0
		}
		f.Index.PodGone(p.Framework, p.UID, p.Version)
		f.tellPod()
	}
}

func (f *Feed) tellPod() {
	if f.PodChanged != nil {
		f.PodChanged()
	}
}

// last is an object that is gone, as it was known last.
func last(o any) any {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return o
}
