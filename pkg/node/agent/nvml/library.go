//go:build cgo

package nvml

import (
	"fmt"
	"os"
	"path/filepath"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// library is the file name of NVIDIA's management library in packages of the driver.
const library = "libnvidia-ml.so.1"

// libraryFolders returns the folders of the library in common distributions.
func libraryFolders() []string {
	return []string{
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", // Debian and Ubuntu
		"/usr/lib64", "/usr/lib", "/lib64", // others
		"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/aarch64-linux-gnu/nvidia/current", // Debian, which may not link to it
		"/home/kubernetes/bin/nvidia/lib64", // Google's images
	}
}

// FindLibrary searches for NVIDIA's management library below root, a folder with the files of a machine. FindLibrary resolves absolute links relative
// to root. For example, Debian's link points to /etc/alternatives.
func FindLibrary(root string) (string, error) {
	for _, folder := range libraryFolders() {
		path, err := securejoin.SecureJoin(root, filepath.Join(folder, library))
		if err != nil {
			return "", fmt.Errorf("look for %s below %s: %w", library, root, err)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("NVIDIA's driver isn't installed: there is no %s below %s", library, root)
}
