package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/replace"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// record lists the devices of a claim.
type record struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Pods are the UIDs of the pods that may use the claim. PodNames are their names. Older records don't contain Pods and PodNames.
	Pods     []types.UID `json:"pods,omitempty"`
	PodNames []string    `json:"podNames,omitempty"`
	// Since is the time of the allocation.
	Since time.Time `json:"since,omitzero"`
	// Devices are the allocated devices of this machine, in the order of the claim.
	Devices []assigned `json:"devices"`
	// Parts is the number of devices per GPU at the time of the allocation. If this number has changed, the devices have other numbers now.
	Parts int32 `json:"parts,omitempty"`
	// MIG is the profile of the devices if the devices are instances, or "".
	MIG string `json:"mig,omitempty"`
}

// numbered reports whether the record's device numbers are valid if each GPU is split into parts devices of the profile mig.
func (r *record) numbered(parts int32, mig string) bool {
	return max(r.Parts, 1) == max(parts, 1) && r.MIG == mig
}

// place returns the position of a device among the devices of its GPU. The first position is 0.
func (r *record) place(device string) int {
	return int(cardOf(device, 1)) % int(max(r.Parts, 1))
}

// card returns the number of a device's GPU. card returns -1 for an invalid name.
func (r *record) card(device string) int32 { return cardOf(device, r.Parts) }

// cardOf returns the number of a device's GPU if each GPU is split into parts devices. cardOf returns -1 for an invalid name.
func cardOf(device string, parts int32) int32 {
	index, err := strconv.ParseInt(strings.TrimPrefix(device, claim.DeviceName(0)[:len(claim.DeviceName(0))-1]), 10, 32)
	if err != nil {
		return -1
	}
	return int32(index) / max(parts, 1)
}

func (r *record) cards() []int32 {
	var out []int32
	for _, a := range r.Devices {
		if c := r.card(a.Device); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// assigned is a device that was allocated for a request of a claim.
type assigned struct {
	Request string `json:"request"`
	Device  string `json:"device"`
}

func (r *record) has(device string) bool {
	for _, d := range r.Devices {
		if d.Device == device {
			return true
		}
	}
	return false
}

// records stores each record in a file. The files are kept as long as the kubelet's state of pods. The records must survive restarts of the agent and
// of the machine, because the kubelet releases a claim only by UID.
type records struct {
	folder string
	of     map[types.UID]*record
	// held contains the GPUs that can't be allocated to claims now.
	held map[int32]bool
	// mu guards of. Other goroutines may read it during a call of the kubelet.
	mu sync.Mutex
}

const recordSuffix = ".json"

// openRecords reads all records. openRecords fails if a record isn't readable, because otherwise the record's devices would be allocated a second
// time.
func openRecords(folder string) (*records, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	out := &records{folder: folder, of: map[types.UID]*record{}}
	for _, e := range entries {
		file := filepath.Join(folder, e.Name())
		uid, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok {
			// An interrupted write has left this file. The devices of this record weren't allocated.
			if err := os.Remove(file); err != nil {
				return nil, err
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &record{}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it once no pod of the claim runs on this machine", file, err)
		}
		if string(r.UID) != uid {
			return nil, fmt.Errorf("%s: it is the record of claim %s/%s, %s; remove it once no pod of the claim runs on this machine", file, r.Namespace, r.Name, r.UID)
		}
		out.of[r.UID] = r
	}
	return out, nil
}

// holder returns the claim that uses a device, or nil. parts and mig describe the current split of GPUs. A claim that was recorded with another split
// holds whole GPUs.
func (r *records) holder(device string, parts int32, mig string) *record {
	for _, other := range r.of {
		same := other.numbered(parts, mig)
		if same && other.has(device) || !same && slices.Contains(other.cards(), cardOf(device, parts)) {
			return other
		}
	}
	return nil
}

// add writes a record durably, so that the record survives a power failure.
func (r *records) add(rec *record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range rec.Devices {
		if r.held[rec.card(a.Device)] {
			return fmt.Errorf("%s is being reset or split; retrying", a.Device)
		}
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	file := r.file(rec.UID)
	if err := replace.Durably(file, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	r.of[rec.UID] = rec
	return nil
}

// hold reserves a GPU until release is called. hold fails if a claim uses the GPU.
func (r *records) hold(card int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, holder := range r.of {
		if slices.Contains(holder.cards(), card) {
			return fmt.Errorf("the claim %s/%s holds it: a pod that uses it would lose its work; stop the pod first", holder.Namespace, holder.Name)
		}
	}
	if r.held[card] {
		return errors.New("another operation on it is in progress; try again")
	}
	if r.held == nil {
		r.held = map[int32]bool{}
	}
	r.held[card] = true
	return nil
}

// holdToSplit reserves a GPU until release is called, for splitting the GPU into instances of a profile. holdToSplit fails if a claim uses another
// part of the GPU. Claims with instances of the same profile don't block the split, because after a restart of the machine the instances don't exist
// yet. used reports whether such claims exist.
func (r *records) holdToSplit(card, parts int32, mig string) (used bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, holder := range r.of {
		if !slices.Contains(holder.cards(), card) {
			continue
		}
		if mig == "" || !holder.numbered(parts, mig) {
			return false, &heldError{holder}
		}
		used = true
	}
	if r.held[card] {
		return false, &gpu.BusyError{Why: "another operation on it is in progress"}
	}
	if r.held == nil {
		r.held = map[int32]bool{}
	}
	r.held[card] = true
	return used, nil
}

type heldError struct{ by *record }

func (e *heldError) Error() string {
	return fmt.Sprintf("the claim %s/%s holds it", e.by.Namespace, e.by.Name)
}

func (r *records) release(card int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, card)
}

// all returns the records. Callers must not change a record.
func (r *records) all() []*record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.of))
}

func (r *records) known(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[uid] != nil
}

func (r *records) remove(uid types.UID) error {
	if err := os.Remove(r.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
	return nil
}

func (r *records) file(uid types.UID) string {
	return filepath.Join(r.folder, string(uid)+recordSuffix)
}
