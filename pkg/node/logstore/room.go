package logstore

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// makeRoom removes expired logs. If the total size exceeds the limit, makeRoom also removes the oldest parts of logs.
func (s *Store) makeRoom() {
	all := s.all()
	used := int64(0)
	for _, x := range all {
		x.mu.Lock()
		if x.over && (len(x.segments) == 0 || s.limits.Age > 0 && s.now().Sub(x.last) > s.limits.Age) {
			s.problem(x.key, s.remove(x))
		}
		used += x.disk()
		x.mu.Unlock()
	}
	if used > s.limits.Total {
		used = s.squeeze(all, used)
	}
	s.mu.Lock()
	s.used = used
	s.mu.Unlock()
}

// squeeze removes the oldest segments until all logs fit into the limit. squeeze takes segments from the logs of deleted pods first, and then from
// the longest logs. squeeze doesn't remove the current segment of a running container.
func (s *Store) squeeze(all []keyed, used int64) int64 {
	for _, x := range all {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	var gone, here []keyed
	for _, x := range all {
		if x.over {
			gone = append(gone, x)
		} else {
			here = append(here, x)
		}
	}
	slices.SortFunc(gone, func(a, b keyed) int { return a.last.Compare(b.last) })
	for _, x := range gone {
		for used > s.limits.Total && len(x.segments) > 0 {
			size := x.segments[0].size
			err := x.drop()
			if err == nil && len(x.segments) == 0 {
				err = s.remove(x)
			}
			if s.problem(x.key, err); err != nil {
				break
			}
			used -= size
		}
	}
	for used > s.limits.Total {
		if len(here) == 0 {
			break
		}
		longest := slices.MaxFunc(here, func(a, b keyed) int { return cmp.Compare(a.droppable(), b.droppable()) })
		if longest.droppable() == 0 {
			break
		}
		size := longest.segments[0].size
		if err := longest.drop(); err != nil {
			s.problem(longest.key, err)
			break
		}
		used -= size
	}
	return used
}

// droppable returns the size of a running container's log if the log contains removable segments. droppable returns 0 for a log with a single
// segment.
func (s *stream) droppable() int64 {
	if len(s.segments) < 2 {
		return 0
	}
	return s.disk()
}

func (s *Store) remove(x keyed) error {
	if err := os.RemoveAll(x.dir); err != nil {
		return err
	}
	x.segments = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, x.key)
	_ = os.Remove(filepath.Dir(x.dir)) // unless other containers of the pod still have logs
	return nil
}
