package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// ledgerPath is the file that records which kernel settings the machine's sandboxes have raised. The sandboxes share the settings. The removal of
// the last sandbox restores them. After a boot, /run is empty and the settings have their defaults.
const ledgerPath = "/run/paictl/sandbox-sysctls.json"

// inotifyInstances is enough for a hundred hosts with kubelet and containerd. The usual limit of 128, which all hosts share, is enough for only
// eight hosts with systemd.
const inotifyInstances = 8192

// ledger records the original values of settings, and the directories of the sandboxes that need the changed values.
type ledger struct {
	Original map[string]string   `json:"original"` // path below /proc/sys → value before
	Users    map[string][]string `json:"users"`    // path below /proc/sys → directories
}

// raiseSysctls raises each setting to at least the given value. If the machine doesn't allow a change, raiseSysctls only warns, because the setting
// merely limits the number of hosts.
func raiseSysctls(dir string, want map[string]int, progress func(string)) error {
	return withLedger(func(l *ledger) error {
		for key, value := range want {
			b, err := os.ReadFile(filepath.Join("/proc/sys", key))
			if err != nil {
				return fmt.Errorf("read a kernel setting: %w", err)
			}
			now := strings.TrimSpace(string(b))
			l.use(key, now, dir)
			if n, err := strconv.Atoi(now); err == nil && n >= value {
				continue
			}
			// Write the record to the disk before the setting changes.
			if err := l.save(); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join("/proc/sys", key), []byte(strconv.Itoa(value)), 0); err != nil {
				progress(fmt.Sprintf("warning: %s stays at %s, but should be %d: %v", key, now, value, err))
			}
		}
		return nil
	})
}

// restoreSysctls restores the settings that no other sandbox needs.
func restoreSysctls(dir string) error {
	return withLedger(func(l *ledger) error {
		for key, original := range l.release(dir) {
			if err := os.WriteFile(filepath.Join("/proc/sys", key), []byte(original), 0); err != nil {
				return fmt.Errorf("restore a kernel setting: %w", err)
			}
		}
		return nil
	})
}

func (l *ledger) use(key, now, dir string) {
	if _, ok := l.Original[key]; !ok {
		l.Original[key] = now
	}
	for _, d := range l.Users[key] {
		if d == dir {
			return
		}
	}
	l.Users[key] = append(l.Users[key], dir)
}

// release removes a directory from all settings. It returns the settings that no sandbox needs any longer, with their original values.
func (l *ledger) release(dir string) map[string]string {
	free := map[string]string{}
	for key, users := range l.Users {
		var rest []string
		for _, d := range users {
			// Also remove sandboxes whose directories no longer exist, because they can't release the setting themselves.
			if d != dir && exists(filepath.Join(d, stateFile)) {
				rest = append(rest, d)
			}
		}
		if l.Users[key] = rest; len(rest) == 0 {
			free[key] = l.Original[key]
			delete(l.Users, key)
			delete(l.Original, key)
		}
	}
	return free
}

func (l *ledger) save() error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return writeFile(ledgerPath, b, 0o600)
}

// withLedger reads the record, lets f change it, and writes it back. It holds a lock during this time.
func withLedger(f func(*ledger) error) error {
	if err := os.MkdirAll(filepath.Dir(ledgerPath), 0o755); err != nil {
		return err
	}
	lock := flock.New(ledgerPath + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the record of kernel settings: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	l := &ledger{}
	b, err := os.ReadFile(ledgerPath)
	if err == nil {
		err = json.Unmarshal(b, l)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the record of kernel settings %s: %w", ledgerPath, err)
	}
	if l.Original == nil {
		l.Original, l.Users = map[string]string{}, map[string][]string{}
	}
	if err := f(l); err != nil {
		return err
	}
	if len(l.Users) > 0 {
		return l.save()
	}
	for _, path := range []string{ledgerPath, ledgerPath + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_ = os.Remove(filepath.Dir(ledgerPath)) // fails while another program uses the folder
	return nil
}
