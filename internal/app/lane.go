package app

import (
	"context"
	"fmt"
	"net/http"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/copier"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// Lane wires what one route's requests travel on, as the service does, for
// commands that only look. Every request to a store goes through looks, which is
// to let no write pass; the guards need none to judge, and a gate that closes stays
// closed. Lane opens no socket.
func Lane(ctx context.Context, cfg *config.Config, r *route.Route, looks func(http.RoundTripper) http.RoundTripper) (copier.Lane, error) {
	w := &wiring{app: &App{}, cfg: cfg, tel: telemetry.Nop(), names: map[string]int{}, looks: looks}
	var err error
	if w.aws, err = awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(cfg.Region)); err != nil {
		return copier.Lane{}, fmt.Errorf("load AWS configuration: %w", err)
	}
	src, err := w.source(r)
	if err != nil {
		return copier.Lane{}, fmt.Errorf("route %q: %w", r.Bucket, err)
	}
	dst, dstGuard, err := w.destination(r)
	if err != nil {
		return copier.Lane{}, fmt.Errorf("route %q: %w", r.Bucket, err)
	}
	return copier.Lane{Route: r, Source: src.Source, SourceGuard: src.guard, Destination: dst, DestinationGuard: dstGuard}, nil
}
