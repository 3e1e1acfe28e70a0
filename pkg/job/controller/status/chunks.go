// Package status keeps the tasks of large jobs: a status of ten thousand tasks doesn't fit into one object, and every
// change of a task would rewrite it. In: a Framework's status. Out: ConfigMaps with a hundred tasks each, and the
// status that Fill rebuilds from the ConfigMaps.
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

// PerChunk is how many tasks one ConfigMap holds. Smaller Frameworks have their tasks in the status.
const PerChunk = 100

// LabelPart marks the ConfigMaps of tasks; its value is PartTasks.
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

// Name returns the name of the ConfigMap of a chunk.
func Name(framework string, k int32) string {
	return framework + "-tasks-" + strconv.Itoa(int(k))
}

// Task names a task.
type Task struct {
	Role  string
	Index int32
}

// chunk is the content of one ConfigMap.
type chunk struct {
	Roles []chunkRole `json:"roles"`
}

type chunkRole struct {
	Name  string           `json:"name"`
	Tasks []*v1.TaskStatus `json:"tasks"`
}

// Layout records the chunk of every task. A task stays in its chunk, so that a rescale never stores a task twice or not at all.
type Layout struct {
	of     map[Task]int32
	size   []int
	parts  []part // as many as size
	listed int    // how many the Framework's status in the API lists
	moved  []Task // from the status, when it was read; no chunk has them yet
	// small is how many tasks of each role were in the status before there were chunks. They are the first tasks of the role.
	small map[string]int32
}

// part is a chunk in the version that was last read or written.
type part struct {
	v1.TaskPart
	version string // its resourceVersion, without which it isn't overwritten; empty if it isn't known
}

// Chunks returns the number of chunks; 0: all tasks are in the status.
func (l *Layout) Chunks() int32 { return int32(len(l.size)) }

// Unlisted reports whether there are chunks that the Framework's status in the API doesn't list yet.
func (l *Layout) Unlisted() bool { return len(l.size) > l.listed }

// Listed records that the status in the API lists all chunks.
func (l *Layout) Listed() { l.listed = len(l.size) }

// Parts returns the generation and the sum of each chunk. The generation of one that was never written is 0.
func (l *Layout) Parts() []v1.TaskPart {
	out := make([]v1.TaskPart, len(l.parts))
	for k, p := range l.parts {
		out[k] = p.TaskPart
	}
	return out
}

// Update adapts the layout to a status, and returns the chunks of the changed tasks. The layout stays empty while the tasks fit into the
// status.
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

// keepSmall records which tasks are in the status.
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
		// The tasks of a role are sorted by their index.
		if i := int(t.Index); i < len(r.TaskStatuses) && r.TaskStatuses[i].Index == t.Index {
			return r.TaskStatuses[i]
		}
	}
	return nil
}

// Encode returns the ConfigMaps of these chunks for their next write. Each ConfigMap has the resourceVersion of its last read, so a
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

// Wrote records that a chunk of Encode is in the API, which has set its resourceVersion. Different chunks may be recorded concurrently.
func (l *Layout) Wrote(k int32, cm *corev1.ConfigMap) {
	l.parts[k] = part{v1.TaskPart{Generation: l.parts[k].Generation + 1, Sum: sum(cm)}, cm.ResourceVersion}
}

// Overtaken reports whether a chunk in the API belongs to a later attempt than the chunk to be written, or to the same attempt and
// isn't older: another replica has written it. A chunk without its labels isn't found by readers, and doesn't count.
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

// age reads a chunk's attempt and generation; an unreadable one counts as the oldest.
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

// sum identifies a chunk's content.
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

// Header returns the status in the Framework: without tasks if they are in chunks. Those that were in the status stay there until
// their chunk has been written.
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

// Reset empties the layout for another attempt. The tasks of small jobs are in the status again.
func (l *Layout) Reset() { *l = Layout{} }
