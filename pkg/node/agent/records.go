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

// record lists the devices that were allocated to the pods of a claim.
type record struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Pods are the UIDs of the pods that may use the claim, and PodNames are their names. Older records don't contain them.
	Pods     []types.UID `json:"pods,omitempty"`
	PodNames []string    `json:"podNames,omitempty"`
	// Since is when the devices were allocated.
	Since time.Time `json:"since,omitzero"`
	// Devices are the allocated devices of this machine, in the order of the claim.
	Devices []assigned `json:"devices"`
	// Parts is the number of devices per GPU at the time of the allocation. If it has changed since, the devices have other numbers now.
	Parts int32 `json:"parts,omitempty"`
	// MIG is the profile of the devices if they were instances, or "".
	MIG string `json:"mig,omitempty"`
}

// numbered reports whether the record's device numbers are valid if each GPU is split into parts devices of the profile mig.
func (r *record) numbered(parts int32, mig string) bool {
	return max(r.Parts, 1) == max(parts, 1) && r.MIG == mig
}

// place returns the position of a device among the devices of its GPU, counted from 0.
func (r *record) place(device string) int {
	return int(cardOf(device, 1)) % int(max(r.Parts, 1))
}

// card returns the number of the GPU that a device is, or is a part of. It returns -1 for an invalid name.
func (r *record) card(device string) int32 { return cardOf(device, r.Parts) }

// cardOf returns the number of a device's GPU if each GPU is split into parts devices. It returns -1 for an invalid name.
func cardOf(device string, parts int32) int32 {
	index, err := strconv.ParseInt(strings.TrimPrefix(device, claim.DeviceName(0)[:len(claim.DeviceName(0))-1]), 10, 32)
	if err != nil {
		return -1
	}
	return int32(index) / max(parts, 1)
}

// cards returns the numbers of the GPUs that the record's devices belong to.
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

// records stores each record in a file. The folder of these files exists as long as the kubelet's state of its pods. The records survive restarts of
// the agent and of the machine, because the kubelet passes only the UID of a claim when it releases the claim.
type records struct {
	folder string
	of     map[types.UID]*record
	// held contains the GPUs that can't be allocated to claims at present.
	held map[int32]bool
	// mu guards of, which other goroutines may read during a call of the kubelet.
	mu sync.Mutex
}

const recordSuffix = ".json"

// openRecords reads all records. It fails if it can't read a record, because otherwise the devices of that record would be allocated a second time.
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
			// This file is left from an interrupted write. Its devices weren't allocated yet.
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

// holder returns the claim that has a device, or nil. parts and mig describe how each GPU is split now. A claim that was recorded when GPUs were
// split differently holds whole GPUs.
func (r *records) holder(device string, parts int32, mig string) *record {
	for _, other := range r.of {
		same := other.numbered(parts, mig)
		if same && other.has(device) || !same && slices.Contains(other.cards(), cardOf(device, parts)) {
			return other
		}
	}
	return nil
}

// add writes a record durably, so that it survives a power failure.
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

// hold reserves a GPU until release is called. It fails if a claim has the GPU.
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

// holdToSplit reserves a GPU until release is called, so that it can be split into instances of a profile. It fails if a claim has another part of
// the GPU. Claims that have such instances may stay, because the instances don't exist yet after a restart of the machine. used reports whether there
// are such claims.
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

// heldError is the error for a GPU that is allocated to a claim.
type heldError struct{ by *record }

func (e *heldError) Error() string {
	return fmt.Sprintf("the claim %s/%s holds it", e.by.Namespace, e.by.Name)
}

func (r *records) release(card int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, card)
}

// all returns the records. A record doesn't change after it was added.
func (r *records) all() []*record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.of))
}

// known reports whether a claim has a record.
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
