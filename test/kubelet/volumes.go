package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes creates a folder for each volume of the pod, and returns the folders by the names of the volumes.
func (r *run) volumes() (map[string]string, error) {
	out := map[string]string{}
	for i := range r.pod.Spec.Volumes {
		v := &r.pod.Spec.Volumes[i]
		folder := filepath.Join(r.folder, "volumes", v.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, err
		}
		files, err := r.content(v)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o444); err != nil {
				return nil, err
			}
		}
		out[v.Name] = folder
	}
	return out, nil
}

// content returns the files of a volume, by name.
func (r *run) content(v *corev1.Volume) (map[string][]byte, error) {
	switch {
	case v.EmptyDir != nil:
		return nil, nil
	case v.Secret != nil && v.Secret.Items == nil:
		return r.secret(v.Secret.SecretName, v.Secret.Optional)
	case v.ConfigMap != nil && v.ConfigMap.Items == nil:
		return r.configMap(v.ConfigMap.Name, v.ConfigMap.Optional)
	}
	return nil, errors.New("this kubelet has no volumes of its kind")
}

// secret waits until a Secret exists, as a kubelet does, and returns its files. A submission creates the Secret after the job.
func (r *run) secret(name string, optional *bool) (files map[string][]byte, err error) {
	err = r.wait(optional, func() error {
		s, err := r.k.c.Client.CoreV1().Secrets(r.pod.Namespace).Get(r.stopped, name, metav1.GetOptions{})
		if err == nil {
			files = s.Data
		}
		return err
	})
	return files, err
}

func (r *run) configMap(name string, optional *bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := r.wait(optional, func() error {
		m, err := r.k.c.Client.CoreV1().ConfigMaps(r.pod.Namespace).Get(r.stopped, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		maps.Copy(files, m.BinaryData)
		for key, text := range m.Data {
			files[key] = []byte(text)
		}
		return nil
	})
	return files, err
}

// wait calls ask until it returns no NotFound error. If the object is optional, wait doesn't repeat the call.
func (r *run) wait(optional *bool, ask func() error) error {
	for {
		err := ask()
		if !apierrors.IsNotFound(err) {
			return err
		}
		if optional != nil && *optional {
			return nil
		}
		select {
		case <-r.stopped.Done():
			return r.stopped.Err()
		case <-time.After(again):
		}
	}
}
