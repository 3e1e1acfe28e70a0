package volume

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Owner is the numeric owner of a folder.
type Owner struct{ UID, GID int }

// ParseOwner parses "UID" or "UID:GID". If the GID is missing, it equals the UID.
func ParseOwner(s string) (Owner, error) {
	user, group, both := strings.Cut(s, ":")
	if !both {
		group = user
	}
	uid, err1 := strconv.ParseUint(user, 10, 31)
	gid, err2 := strconv.ParseUint(group, 10, 31)
	if err1 != nil || err2 != nil {
		return Owner{}, fmt.Errorf("owner %q is not a user id, or a user and a group id as in 1000:1000", s)
	}
	return Owner{UID: int(uid), GID: int(gid)}, nil
}

// ParseMode parses an octal mode such as 0750. The mode may contain the set-group-ID bit (2000) and the sticky bit (1000).
func ParseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o3777 {
		return 0, fmt.Errorf("mode %q is not an octal mode of a folder, as in 0750 or 2770", s)
	}
	mode := fs.FileMode(n & 0o777)
	if n&0o2000 != 0 {
		mode |= fs.ModeSetgid
	}
	if n&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode, nil
}

const modeBits = fs.ModePerm | fs.ModeSetgid | fs.ModeSticky

// Prepare creates the folder name below root, and sets the owner and the mode if they differ. Prepare doesn't change the folder's content. Prepare
// returns descriptions of its changes, or nil if the folder was already correct.
func Prepare(root *os.Root, name string, owner Owner, mode fs.FileMode) ([]string, error) {
	parts, err := split(name)
	if err != nil {
		return nil, err
	}
	last := len(parts) - 1
	parent, err := descend(root, parts[:last], true)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	defer parent.Close()
	var did []string
	if _, err := parent.Lstat(parts[last]); os.IsNotExist(err) {
		did = append(did, "created")
	}
	dir, err := step(parent, parts[last], true)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	defer dir.Close()
	more, err := own(dir, owner, mode)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	return append(did, more...), nil
}

// own sets the owner and the mode of an open folder. own sets the owner first, because changing the owner clears mode bits.
func own(dir *os.Root, owner Owner, mode fs.FileMode) ([]string, error) {
	var did []string
	info, err := dir.Stat(".")
	if err != nil {
		return nil, cause(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int64(st.Uid) != int64(owner.UID) || int64(st.Gid) != int64(owner.GID) {
		if err := dir.Chown(".", owner.UID, owner.GID); err != nil {
			return nil, fmt.Errorf("set the owner to %d:%d: %w", owner.UID, owner.GID, cause(err))
		}
		did = append(did, fmt.Sprintf("owner %d:%d was %d:%d", owner.UID, owner.GID, st.Uid, st.Gid))
		if info, err = dir.Stat("."); err != nil {
			return nil, cause(err)
		}
	}
	if info.Mode()&modeBits != mode {
		if err := dir.Chmod(".", mode); err != nil {
			return nil, fmt.Errorf("set the mode: %w", cause(err))
		}
		// Without the capability FSETID, the kernel silently drops the set-group-ID bit.
		now, err := dir.Stat(".")
		if err != nil {
			return nil, cause(err)
		}
		if now.Mode()&modeBits != mode {
			return nil, fmt.Errorf("set the mode: it is %v and not %v; the capability FSETID is missing", now.Mode()&modeBits, mode)
		}
		did = append(did, fmt.Sprintf("mode %v was %v", mode, info.Mode()&modeBits))
	}
	return did, nil
}
