#!/bin/sh
# Fetches what the page uses of others anew: one file of code, one of style, one licence.
set -eu
version=${1:-1.6.32}
here=$(cd "$(dirname "$0")" && pwd)
part=$(mktemp -d)
trap 'rm -rf "$part"' EXIT
cd "$part"
npm pack --silent "uplot@$version"
tar xzf "uplot-$version.tgz"
cp package/dist/uPlot.iife.min.js package/dist/uPlot.min.css "$here"
cp package/LICENSE "$here/uPlot.LICENSE"
