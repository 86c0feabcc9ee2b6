#include <chrono>
#include <cstdio>
#include <cstdlib>
#include "../pyramid.hpp"
#include "../splat.hpp"
#include "../system.hpp"
using namespace bilateral;
#include <time.h>
static double now(){timespec t; clock_gettime(getenv("CPU")?CLOCK_THREAD_CPUTIME_ID:CLOCK_MONOTONIC,&t); return double(t.tv_sec)+1e-9*double(t.tv_nsec);}
int main(int argc,char**argv){
  std::size_t H=strtoul(argv[2],0,10),W=strtoul(argv[3],0,10); double s=atof(argv[4]); int th=atoi(argv[5]); 
  std::vector<std::uint8_t> rgb(H*W*3); FILE*f=fopen(argv[1],"rb"); if(fread(rgb.data(),1,rgb.size(),f)!=rgb.size())return 1; fclose(f);
  std::vector<float> t(H*W),c(H*W);
  for(size_t i=0;i<H*W;i++){t[i]=rgb[3*i]/255.f+0.1f*((i*2654435761u>>8)%1000/1000.f);c[i]=((i*40503u>>4)%16)==0?1.f:0.01f;}
  for(int rep=0;rep<6;rep++){
    Reference<std::uint8_t> ref{rgb.data(),H,W,3,{{{.299,.587,.114},{-.168736,-.331264,.5},{.5,-.418688,-.081312}}},{0,128,128},{s,s,s},255};
    double t0=now();
    Grid g; {
      const Binning bins=make_binning(ref,th); g.height=H;g.width=W;g.dimensions=5;g.layout=bins.layout;
      Tiles<NarrowKey> tiles; tiles.x=Axis::of_pixels(W,s); tiles.y=Axis::of_pixels(H,s);
      detail::find_vertices(ref,bins,g,tiles,th);
      g.row_pixel=tiles.y.start; for(size_t r=0;r<=tiles.rows();r++)g.row_vertex.push_back(tiles.row_first(r));
      double t1=now();
      detail::find_edges(g,tiles,th);
      g.tiles=std::move(tiles);
      double t2=now();
      printf("verts %.1f nb %.1f ",(t1-t0)*1e3,(t2-t1)*1e3);
    }
    double t2=now();
    g.centre=2;g.space=1;g.range=.125;
    build_pyramid(g,th); double t3=now();
    Buffer<float> nf(g.vertices,1.f); int it=bistochastize(g,nf,2e-6,th); double t4=now();
    Buffer<float> w(g.vertices),b(g.vertices),x(g.vertices),out(H*W);
    double t5=now();
    auto ob=splat_target(g,t.data(),c.data(),1,w.data(),b.data(),th); double t6=now();
    pyramid_start(g,w.data(),b.data(),1,x.data(),th); double t7=now();
    PcgOptions o; o.smoothness=4; o.threads=th; double sc=1;
    auto r=solve_system(g,nf.data(),w.data(),b.data(),1,&sc,x.data(),o); double t8=now();
    slice(g,x.data(),1,out.data(),th); double t9=now();
    size_t nn=0; for(auto&l:g.edges) nn+=2*l.edge.size();
    printf("bist %.1f(%d) pyr %.1f(%zu) splat %.1f start %.1f pcg %.1f slice %.1f | total %.1f V=%zu nb=%.2f res %.2g known %zu\n",(t4-t3)*1e3,it,(t3-t2)*1e3,g.levels.size(),(t6-t5)*1e3,(t7-t6)*1e3,(t8-t7)*1e3,(t9-t8)*1e3,(t9-t0)*1e3,g.vertices,(double)nn/g.vertices,r.residuals.back(),ob.known);
  }
}
