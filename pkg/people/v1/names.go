package v1

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// MaxName is the maximum length of the name of a person or group. A label value must be able to hold the name.
const MaxName = 63

var (
	named  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	simple = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// coded is the prefix of the object name for a person or group whose name isn't a valid object name.
const coded = "x-"

// ValidName reports whether a text can be the name of a person or a group.
func ValidName(name string) bool { return named.MatchString(name) }

// ObjectName returns the name of the User or Group object for a person or group. Different names have different object names.
func ObjectName(name string) string {
	if simple.MatchString(name) && !strings.HasPrefix(name, coded) {
		return name
	}
	return coded + hex.EncodeToString([]byte(name))
}

// NameOf returns the name of the person or group for an object name. It returns false if the object can't belong to a person or group.
func NameOf(object string) (string, bool) {
	name := object
	if text, isCoded := strings.CutPrefix(object, coded); isCoded {
		b, err := hex.DecodeString(text)
		if err != nil {
			return "", false
		}
		name = string(b)
	}
	return name, ValidName(name) && ObjectName(name) == object
}

// FoldName returns a name in lower case. This form must be unique, because file systems of storages may ignore case.
func FoldName(name string) string { return strings.ToLower(name) }

var (
	// reserved holds names with another meaning in paths, and names of the platform and its operators.
	reserved = []string{"me", "pai", "application", "default", "administrator", "operator", "system", "anonymous", "nobody", "everyone"}
	// powerful holds names that sound like an administrator, and names of accounts on machines whose users submit jobs with a kubeconfig.
	powerful = []string{"root", "admin", "administrators", "operators", "superuser", "sysadmin", "security", "support", "daemon", "bin", "sys", "ubuntu", "debian",
		"centos", "rocky", "almalinux", "fedora", "core", "ec2-user", "cloud-user", "azureuser", "opc", "vagrant", "kubernetes", "kubernetes-admin", "kube", "paictl", "openpai"}
)

// Reserved reports whether a name is reserved and can't be the name of a person.
func Reserved(name string) bool {
	return slices.Contains(reserved, FoldName(name)) || strings.HasPrefix(FoldName(name), "system:")
}

// Powerful reports whether only an administrator may add a person with this name.
func Powerful(name string) bool { return slices.Contains(powerful, FoldName(name)) }

// The groups that always exist.
const (
	// GroupDefault contains the people who are added without groups.
	GroupDefault = "default"
	// GroupAdministrators contains the first administrator.
	GroupAdministrators = "administrators"
)
