package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// ServeAPI starts the API of a cluster for tests. The API runs as long as the calling thread exists, so the caller must call runtime.LockOSThread.
// To stop the API, the caller ends the goroutine or calls Down. If Options.Hosts is zero, only etcd and the API server run, and the bundle needs no
// other programs. Otherwise the controllers, the scheduler and the simulator also run, and the cluster has Options.Hosts nodes.
func ServeAPI(ctx context.Context, opts Options) (*Sandbox, error) {
	opts.Progress = orDrop(opts.Progress)
	var err error
	if opts.Dir, err = absolute(opts.Dir); err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("an API-only sandbox needs Linux, but this is %s", runtime.GOOS)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's directory: %w", err)
	}
	s, err := openOrCreateAPI(opts)
	if err != nil {
		return nil, err
	}
	s.bound, s.controllers, s.controllerQPS = true, opts.Controllers, opts.ControllerQPS
	names := programNames()
	if opts.Hosts == 0 {
		names = bareNames()
	}
	programs, version, err := s.findPrograms(names)
	if err != nil {
		return nil, err
	}
	if opts.Hosts > 0 {
		return s, s.upAPI(ctx, programs, version, plainNodes(opts))
	}
	if err := s.ensurePKI(); err != nil {
		return s, fmt.Errorf("make the certificates: %w", err)
	}
	if s.state.API.Ports, err = choosePorts(s.dir); err != nil {
		return s, err
	}
	if err := s.save(); err != nil {
		return s, err
	}
	if opts.Snapshot != nil {
		if err := s.restore(ctx, opts.Snapshot); err != nil {
			return s, err
		}
	}
	_, _, err = s.startAPI(ctx, programs)
	return s, err
}
