package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Lost describes a chunk whose tasks can't be read.
type Lost struct {
	Chunk int32
	// Why says in a few words why the chunk can't be read.
	Why string
	// Written reports whether the chunk was ever written, so that its tasks may have begun. If it wasn't written, a process may have been killed
	// after it wrote the header of an attempt and before it wrote the chunks.
	Written bool
}

// Fill adds the tasks in chunks to a status that was read without them. The tasks of a lost chunk are missing. Their pods may still run, so the
// caller must not treat these tasks as tasks that never began.
func Fill(f *v1.Framework, chunks []*corev1.ConfigMap) (*Layout, []Lost) {
	l := &Layout{}
	if f.Status == nil {
		return l, nil
	}
	l.keepSmall(f.Status)
	if f.Status.AttemptStatus.TaskChunks <= 0 {
		return l, nil
	}
	a := &f.Status.AttemptStatus
	n := min(a.TaskChunks, maxChunks)
	l.of, l.size, l.parts, l.listed = map[Task]int32{}, make([]int, n), make([]part, n), int(n)
	for k := range min(len(a.TaskParts), int(n)) {
		l.parts[k].TaskPart = a.TaskParts[k]
	}
	byName := map[string]*corev1.ConfigMap{}
	for _, cm := range chunks {
		byName[cm.Name] = cm
	}
	roles, small := rolesOf(a)
	var lost []Lost
	for k := range n {
		written := l.parts[k].Generation > 0
		c, err := l.read(f, k, byName[Name(f.Name, k)])
		if err != nil {
			lost = append(lost, Lost{k, err.Error(), written})
			continue
		}
		l.add(a, roles, k, c)
	}
	l.move(roles, small)
	for _, r := range roles {
		slices.SortFunc(r.TaskStatuses, func(a, b *v1.TaskStatus) int { return cmp.Compare(a.Index, b.Index) })
	}
	return l, lost
}

// move takes over tasks that are in the status although there are chunks. This happens if a process was killed while it wrote the first chunks.
func (l *Layout) move(roles map[string]*v1.TaskRoleStatus, small []chunkRole) {
	for _, r := range small {
		for _, t := range r.Tasks {
			if t == nil || t.Index < 0 {
				continue
			}
			ref := Task{r.Name, t.Index}
			if _, written := l.of[ref]; !written {
				l.place(ref)
				l.moved = append(l.moved, ref)
				roles[r.Name].TaskStatuses = append(roles[r.Name].TaskStatuses, t)
			}
		}
	}
}

// maxChunks is the maximum number of chunks. It is twice as many as the maximum number of tasks needs, because rescaling may leave chunks half
// full.
const maxChunks = 2 * v1.MaxTasks / PerChunk

// rolesOf removes the tasks from the roles of a status, and returns both the roles and the removed tasks.
func rolesOf(a *v1.FrameworkAttemptStatus) (roles map[string]*v1.TaskRoleStatus, small []chunkRole) {
	roles = map[string]*v1.TaskRoleStatus{}
	for _, r := range a.TaskRoleStatuses {
		small = append(small, chunkRole{r.Name, r.TaskStatuses})
		r.TaskStatuses = []*v1.TaskStatus{}
		roles[r.Name] = r
	}
	return roles, small
}

// read decodes a chunk. It returns an error if the chunk belongs to another attempt or is older than the header says. A chunk that is newer than
// the header is accepted, because the process that wrote the chunk was killed before it wrote the header.
func (l *Layout) read(f *v1.Framework, k int32, cm *corev1.ConfigMap) (*chunk, error) {
	if cm == nil {
		return nil, fmt.Errorf("ConfigMap %s is missing", Name(f.Name, k))
	}
	if o := metav1.GetControllerOf(cm); o == nil || o.UID != f.UID {
		return nil, fmt.Errorf("ConfigMap %s belongs to something else", cm.Name)
	}
	p := &l.parts[k]
	p.version = cm.ResourceVersion
	if have := cm.Data[attemptKey]; have != strconv.Itoa(int(f.Status.AttemptStatus.ID)) {
		return nil, fmt.Errorf("ConfigMap %s is of attempt %q", cm.Name, have)
	}
	generation := int64(0) // versions before 0.2 didn't write any
	if text := cm.Data[generationKey]; text != "" {
		var err error
		if generation, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("ConfigMap %s has the generation %q", cm.Name, text)
		}
	}
	if generation < p.Generation {
		return nil, fmt.Errorf("ConfigMap %s is outdated: it has generation %d, but %d was written", cm.Name, generation, p.Generation)
	}
	if generation == p.Generation && p.Sum != "" && sum(cm) != p.Sum {
		return nil, fmt.Errorf("ConfigMap %s was changed by something else", cm.Name)
	}
	c, err := unpack(cm)
	if err != nil {
		return nil, err
	}
	p.TaskPart = v1.TaskPart{Generation: generation, Sum: sum(cm)}
	return c, nil
}

// add adds the tasks of a chunk to the status.
func (l *Layout) add(a *v1.FrameworkAttemptStatus, roles map[string]*v1.TaskRoleStatus, k int32, c *chunk) {
	for _, r := range c.Roles {
		into := roles[r.Name]
		if into == nil {
			into = &v1.TaskRoleStatus{Name: r.Name}
			roles[r.Name] = into
			a.TaskRoleStatuses = append(a.TaskRoleStatuses, into)
		}
		for _, t := range r.Tasks {
			if t == nil || t.Index < 0 {
				continue
			}
			ref := Task{r.Name, t.Index}
			if _, twice := l.of[ref]; twice {
				continue // the copies are equal: a process was killed while it moved the task
			}
			into.TaskStatuses = append(into.TaskStatuses, t)
			l.of[ref] = k
			l.size[k]++
		}
	}
}
