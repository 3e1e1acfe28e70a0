// Package status stores the tasks of large jobs. A status with ten thousand tasks doesn't fit into one object, and each change of a task would rewrite it.
// In: a Framework's status. Out: ConfigMaps with a hundred tasks each, and the status that Fill rebuilds from the ConfigMaps.
package status

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// PerChunk is how many tasks one ConfigMap holds. A Framework with at most as many tasks has them in its status.
const PerChunk = 100

// LabelPart is the label of ConfigMaps that hold tasks. Its value is PartTasks.
const (
	LabelPart = "paictl.openpai.org/part"
	PartTasks = "tasks"
)

const (
	key           = "tasks"      // in binaryData, gzipped JSON
	maxContent    = 16 << 20     // unpacked; a hundred tasks with long messages are 1 MB
	attemptKey    = "attemptID"  // in data
	generationKey = "generation" // in data: how often the chunk was written, in decimal
)

// Name returns the name of the ConfigMap with chunk k.
func Name(framework string, k int32) string {
	return framework + "-tasks-" + strconv.Itoa(int(k))
}

// Task identifies a task of a job.
type Task struct {
	Role  string
	Index int32
}

// chunk is the content of one ConfigMap with tasks.
type chunk struct {
	Roles []chunkRole `json:"roles"`
}

type chunkRole struct {
	Name  string           `json:"name"`
	Tasks []*v1.TaskStatus `json:"tasks"`
}

// Layout records which chunk holds each task. A task never moves to another chunk, so that rescaling can neither lose nor duplicate a task.
type Layout struct {
	of     map[Task]int32
	size   []int
	parts  []part // as many as size
	listed int    // how many the Framework's status in the API lists
	moved  []Task // from the status, when it was read; no chunk has them yet
	// small is how many tasks of each role were in the status before there were chunks. These are the first tasks of the role.
	small map[string]int32
}

// part is the version of a chunk that was last read or written.
type part struct {
	v1.TaskPart
	version string // its resourceVersion, without which it isn't overwritten; empty if it isn't known
}

// Chunks returns the number of chunks. Zero means that all tasks are in the status.
func (l *Layout) Chunks() int32 { return int32(len(l.size)) }

// Unlisted reports whether the Framework's status in the API doesn't list all chunks yet.
func (l *Layout) Unlisted() bool { return len(l.size) > l.listed }

// Listed records that the Framework's status in the API lists all chunks.
func (l *Layout) Listed() { l.listed = len(l.size) }

// Parts returns the generation and the checksum of each chunk. The generation of a chunk that was never written is 0.
func (l *Layout) Parts() []v1.TaskPart {
	out := make([]v1.TaskPart, len(l.parts))
	for k, p := range l.parts {
		out[k] = p.TaskPart
	}
	return out
}

// Update adapts the layout to a status, and returns the numbers of the chunks that hold changed tasks. The layout stays empty as long as the
// tasks fit into the status.
func (l *Layout) Update(s *v1.FrameworkStatus, changed []Task) []int32 {
	total := 0
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		total += len(r.TaskStatuses)
	}
	if l.Chunks() == 0 && total <= PerChunk {
		l.keepSmall(s)
		return nil
	}
	if l.Chunks() == 0 {
		l.of = make(map[Task]int32, total)
		for _, r := range s.AttemptStatus.TaskRoleStatuses {
			for _, t := range r.TaskStatuses {
				l.place(Task{r.Name, t.Index})
			}
		}
		all := make([]int32, l.Chunks())
		for k := range all {
			all[k] = int32(k)
		}
		return all
	}
	dirty := map[int32]bool{}
	changed, l.moved = slices.Concat(l.moved, changed), nil
	for _, t := range changed {
		k, ok := l.of[t]
		switch exists := find(s, t) != nil; {
		case !ok && exists:
			k = l.place(t)
		case ok && !exists:
			delete(l.of, t)
			l.size[k]--
		case !ok:
			continue
		}
		dirty[k] = true
	}
	out := make([]int32, 0, len(dirty))
	for k := range dirty {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// keepSmall records which tasks are in the status itself.
func (l *Layout) keepSmall(s *v1.FrameworkStatus) {
	l.small = map[string]int32{}
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			if t != nil {
				l.small[r.Name] = max(l.small[r.Name], t.Index+1)
			}
		}
	}
}

func (l *Layout) place(t Task) int32 {
	k := slices.IndexFunc(l.size, func(n int) bool { return n < PerChunk })
	if k < 0 {
		l.size, l.parts = append(l.size, 0), append(l.parts, part{})
		k = len(l.size) - 1
	}
	l.size[k]++
	l.of[t] = int32(k)
	return l.of[t]
}

func find(s *v1.FrameworkStatus, t Task) *v1.TaskStatus {
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		if r.Name != t.Role {
			continue
		}
		// The tasks of a role are sorted by index, so a task is normally at its index.
		if i := int(t.Index); i < len(r.TaskStatuses) && r.TaskStatuses[i].Index == t.Index {
			return r.TaskStatuses[i]
		}
	}
	return nil
}

// Encode returns the ConfigMaps for the given chunks, ready to be written. Each ConfigMap has the resourceVersion that was last read. So a
// replica that lost its lease can't overwrite the ConfigMaps of its successor.
func (l *Layout) Encode(f *v1.Framework, s *v1.FrameworkStatus, chunks []int32) ([]*corev1.ConfigMap, error) {
	content := make(map[int32]*chunk, len(chunks))
	for _, k := range chunks {
		content[k] = &chunk{}
	}
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		for _, t := range r.TaskStatuses {
			c := content[l.of[Task{r.Name, t.Index}]]
			if c == nil {
				continue
			}
			if n := len(c.Roles); n == 0 || c.Roles[n-1].Name != r.Name {
				c.Roles = append(c.Roles, chunkRole{Name: r.Name})
			}
			last := &c.Roles[len(c.Roles)-1]
			last.Tasks = append(last.Tasks, t)
		}
	}
	out := make([]*corev1.ConfigMap, 0, len(chunks))
	for _, k := range chunks {
		data, err := pack(content[k])
		if err != nil {
			return nil, err
		}
		out = append(out, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: Name(f.Name, k), Namespace: f.Namespace, ResourceVersion: l.parts[k].version,
				Labels:          map[string]string{v1.LabelFramework: f.Name, LabelPart: PartTasks},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f, v1.GroupVersion.WithKind(v1.Kind))},
			},
			Data: map[string]string{
				attemptKey:    strconv.Itoa(int(s.AttemptStatus.ID)),
				generationKey: strconv.FormatInt(l.parts[k].Generation+1, 10),
			},
			BinaryData: map[string][]byte{key: data},
		})
	}
	return out, nil
}

// Wrote records that a chunk which Encode returned is in the API, and its resourceVersion. It may be called concurrently for different chunks.
func (l *Layout) Wrote(k int32, cm *corev1.ConfigMap) {
	l.parts[k] = part{v1.TaskPart{Generation: l.parts[k].Generation + 1, Sum: sum(cm)}, cm.ResourceVersion}
}

// Overtaken reports whether another replica has already written a chunk: by is at least as new as chunk, because it belongs to a later attempt,
// or to the same attempt and has at least the same generation. A ConfigMap with other labels doesn't count, because readers don't find it.
func Overtaken(chunk, by *corev1.ConfigMap) bool {
	for _, label := range []string{v1.LabelFramework, LabelPart} {
		if by.Labels[label] != chunk.Labels[label] {
			return false
		}
	}
	attempt, generation := age(chunk)
	itsAttempt, itsGeneration := age(by)
	return itsAttempt > attempt || itsAttempt == attempt && itsGeneration >= generation
}

// age returns the attempt and the generation of a chunk. A chunk that can't be parsed counts as the oldest.
func age(cm *corev1.ConfigMap) (attempt, generation int64) {
	attempt, err := strconv.ParseInt(cm.Data[attemptKey], 10, 32)
	if err != nil {
		return -1, -1
	}
	if generation, err = strconv.ParseInt(cm.Data[generationKey], 10, 64); err != nil {
		return attempt, -1
	}
	return attempt, generation
}

// sum returns a checksum of a chunk's content.
func sum(cm *corev1.ConfigMap) string {
	h := sha256.Sum256(cm.BinaryData[key])
	return hex.EncodeToString(h[:8])
}

func pack(c *chunk) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if err := json.NewEncoder(z).Encode(c); err != nil {
		return nil, fmt.Errorf("pack tasks: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack tasks: %w", err)
	}
	return buf.Bytes(), nil
}

func unpack(cm *corev1.ConfigMap) (*chunk, error) {
	z, err := gzip.NewReader(bytes.NewReader(cm.BinaryData[key]))
	if err != nil {
		return nil, fmt.Errorf("tasks in ConfigMap %s: %w", cm.Name, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, maxContent)) // longer data is truncated, and then isn't valid JSON
	if err != nil {
		return nil, fmt.Errorf("tasks in ConfigMap %s: %w", cm.Name, err)
	}
	c := &chunk{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("tasks in ConfigMap %s: %w", cm.Name, err)
	}
	return c, nil
}

// Header returns the status to store in the Framework. If the tasks are in chunks, it contains no tasks, except tasks that were in the status
// before and whose chunk has not been written yet.
func (l *Layout) Header(s *v1.FrameworkStatus) *v1.FrameworkStatus {
	out := *s
	out.AttemptStatus.TaskChunks, out.AttemptStatus.TaskParts = l.Chunks(), nil
	if l.Chunks() == 0 {
		return &out
	}
	out.AttemptStatus.TaskParts = l.Parts()
	out.AttemptStatus.TaskRoleStatuses = nil
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		one := *r
		one.TaskStatuses = []*v1.TaskStatus{}
		for _, t := range r.TaskStatuses {
			if t.Index >= l.small[r.Name] {
				break // tasks are sorted by their index
			}
			if k, placed := l.of[Task{r.Name, t.Index}]; placed && l.parts[k].Generation == 0 {
				one.TaskStatuses = append(one.TaskStatuses, t)
			}
		}
		out.AttemptStatus.TaskRoleStatuses = append(out.AttemptStatus.TaskRoleStatuses, &one)
	}
	return &out
}

// Reset empties the layout for a new attempt. If the job is small again, its tasks are in the status.
func (l *Layout) Reset() { *l = Layout{} }
