package kubelet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// path is the environment variable PATH of containers. It contains the folders of this machine's programs, which containers run in place of the
// programs of their images.
const path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the environment of a container.
func (r *run) environ(c *corev1.Container) ([]string, error) {
	if len(c.EnvFrom) > 0 {
		return nil, fmt.Errorf("container %s: this kubelet knows no envFrom", c.Name)
	}
	out := []string{path, "HOME=/tmp", "HOSTNAME=" + cmp.Or(r.pod.Spec.Hostname, r.pod.Name)}
	for i := range c.Env {
		e := &c.Env[i]
		value, err := e.Value, error(nil)
		switch {
		case e.ValueFrom != nil && e.ValueFrom.FieldRef != nil:
			value, err = r.field(e.ValueFrom.FieldRef.FieldPath)
		case e.ValueFrom != nil || strings.Contains(value, "$("):
			err = fmt.Errorf("this kubelet can't fill in %+v", e.ValueFrom)
		}
		if err != nil {
			return nil, fmt.Errorf("container %s: variable %s: %w", c.Name, e.Name, err)
		}
		out = append(out, e.Name+"="+value)
	}
	return out, nil
}

// field returns the value of a field of the pod.
func (r *run) field(name string) (string, error) {
	if key, ok := strings.CutPrefix(name, "metadata.annotations['"); ok {
		return r.pod.Annotations[strings.TrimSuffix(key, "']")], nil
	}
	value, known := map[string]string{
		"metadata.name": r.pod.Name, "metadata.namespace": r.pod.Namespace, "metadata.uid": string(r.pod.UID),
		"spec.nodeName": r.pod.Spec.NodeName, "status.podIP": r.ip, "status.hostIP": nodeAddress,
	}[name]
	if !known {
		return "", fmt.Errorf("this kubelet doesn't know the field %s", name)
	}
	return value, nil
}

// mounts returns the mounts of a container, and the container's command.
func (r *run) mounts(c *corev1.Container, folder string, volumes map[string]string) (out []mount, args []string, err error) {
	for _, m := range c.VolumeMounts {
		if m.SubPath != "" || m.SubPathExpr != "" {
			return nil, nil, fmt.Errorf("this kubelet mounts no part of the volume %s", m.Name)
		}
		out = append(out, mount{volumes[m.Name], m.MountPath})
	}
	files := map[string]string{hostsFile: "127.0.0.1\tlocalhost\n" + r.ip + "\t" + cmp.Or(r.pod.Spec.Hostname, r.pod.Name) + "\n", messageFile: ""}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			return nil, nil, err
		}
	}
	out = append(out, mount{filepath.Join(folder, hostsFile), "/etc/hosts"})
	if mountable(c.TerminationMessagePath) {
		out = append(out, mount{filepath.Join(folder, messageFile), c.TerminationMessagePath})
	}
	for _, folder := range r.k.o.Visible {
		if mountable(folder) { // elsewhere nothing covers it
			out = append(out, mount{folder, folder})
		}
	}
	if len(c.Command) > 0 {
		return out, append(c.Command, c.Args...), nil
	}
	program, known := r.k.o.Programs[c.Image]
	if !known {
		return nil, nil, fmt.Errorf("container %s has no command, and no program is known of its image %s", c.Name, c.Image)
	}
	const entry = "/usr/local/bin/program"
	return append(out, mount{program, entry}), append([]string{entry}, c.Args...), nil
}
