package main

import (
	_ "cel.dev/cel-go/cel"
	_ "github.com/apache/arrow-go/v18/parquet/file"
	_ "github.com/danielgtaylor/huma/v2"
	_ "github.com/danielgtaylor/huma/v2/adapters/humagin"
	_ "github.com/gin-gonic/gin"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/vbauerster/mpb/v8"
	_ "github.com/xitongsys/parquet-go/writer"
	_ "github.com/xitongsys/parquet-go/reader"
	_ "gonum.org/v1/gonum/mathext"
	_ "gonum.org/v1/gonum/stat/distuv"
	_ "gonum.org/v1/gonum/optimize"
	_ "gonum.org/v1/plot"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "go.uber.org/goleak"
)

func main() {}
